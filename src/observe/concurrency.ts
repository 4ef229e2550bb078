/** Bounded concurrency: at most `limit` calls are under way at once, and the first failure ends the rest. */

/** Maps in input order. `limit` at least 1. Rejects with the first error; calls that have begun are not awaited then. */
export async function mapBounded<In, Out>(
  inputs: readonly In[],
  limit: number,
  work: (input: In) => Promise<Out>,
): Promise<readonly Out[]> {
  const results = new Array<Out>(inputs.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < inputs.length; index = next++) {
      results[index] = await work(inputs[index] as In);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, inputs.length) }, worker));
  return results;
}
