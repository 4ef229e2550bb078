/** What is thrown at an answer that is no such message, or one whose gaps would have to be guessed at. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}
