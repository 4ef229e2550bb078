/** Assertions. A failing one is a bug in crigc, never an external failure. */

/** The end of an exhausted union, which the compiler proves unreachable. */
export function assertNever(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value) ?? String(value)}`);
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
  override readonly name = "AssertionError";
}
