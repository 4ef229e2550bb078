/** Bounded concurrency: at most `limit` calls are under way at once, and the first failure ends the rest. */

/** Maps in input order. `limit` at least 1. Rejects with the first error; calls that have begun are not awaited then. */
export async function mapBounded<In, Out>(
  inputs: readonly In[],
  limit: number,
  work: (input: In) => Promise<Out>,
): Promise<readonly Out[]> {
  const results: Out[] = [];
  // One iterator for all workers: each takes the next input when it is free.
  const waiting = inputs.entries();
  const worker = async (): Promise<void> => {
    for (const [index, input] of waiting) results[index] = await work(input);
  };
  await Promise.all(Array.from({ length: Math.min(limit, inputs.length) }, worker));
  return results;
}
