/** What a promise is rejected with; a promise that resolves is the failure then. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`it did not fail: ${Bun.inspect(value)}`);
}
