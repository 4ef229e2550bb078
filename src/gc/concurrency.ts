/** Bounded concurrency: at most `limit` calls at once; the first failure ends the rest. */

/** Maps in input order. `limit` must be at least 1. Rejects with the first error, without waiting for calls in flight. */
export async function mapBounded<In, Out>(
  inputs: readonly In[],
  limit: number,
  work: (input: In) => Promise<Out>,
): Promise<readonly Out[]> {
  const results: Out[] = [];
  // All workers share one iterator and take the next input when free.
  const waiting = inputs.entries();
  const worker = async (): Promise<void> => {
    for (const [index, input] of waiting) results[index] = await work(input);
  };
  await Promise.all(Array.from({ length: Math.min(limit, inputs.length) }, worker));
  return results;
}
