/** A response that is not the expected message, or leaves something to guess. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}
