/** Small functions on plain values. */

/** What JSON and YAML call an object or map. */
export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value of JSON text; `null` if it is none. */
export function parsedJson(
  text: string,
  reviver?: (key: string, value: unknown) => unknown,
): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    return null;
  }
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const compared = <Value extends bigint | number | string>(
  one: Value,
  other: Value,
): number => (one === other ? 0 : one < other ? -1 : 1);

export const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other);
export const larger = (one: bigint, other: bigint): bigint => (one < other ? other : one);

export const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n);

/** Calls `make` once, when the result is first needed. */
export function once<Made>(make: () => Made): () => Made {
  let made: { readonly result: Made } | null = null;
  return () => (made ??= { result: make() }).result;
}

/** The last item of each ID. */
export function byId<Item extends { readonly id: string }>(
  items: readonly Item[],
): ReadonlyMap<string, Item> {
  const found = new Map<string, Item>();
  for (const item of items) found.set(item.id, item);
  return found;
}

/** Strips spaces and tabs from both ends, and no other white space, in time linear in the text. */
// A pattern with a star before its end takes minutes for some thousand blanks.
export function withoutBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === " " || text[at] === "\t";
  let [start, end] = [0, text.length];
  while (isBlank(start)) start += 1;
  while (end > start && isBlank(end - 1)) end -= 1;
  return text.slice(start, end);
}

/** Of `127.0.0.1:9419`, `[::1]:9419` or `:9419` (all addresses, of IPv6 too: `*`), already validated. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return { host: host === "" ? "*" : host, port: Number(address.slice(at + 1)) };
}

/**
 * Runs `work` for each input, `limit` at once, and returns the results in input order. Rejects with the first error,
 * without waiting for calls in flight; none begins after it.
 */
export async function mapBounded<In, Out>(
  inputs: readonly In[],
  limit: number,
  work: (input: In) => Promise<Out>,
): Promise<readonly Out[]> {
  const results: Out[] = [];
  // All workers share one iterator and take the next input when free. A generator, because an error in one ends it for all.
  const waiting = (function* () {
    yield* inputs.entries();
  })();
  const worker = async (): Promise<void> => {
    for (const [index, input] of waiting) results[index] = await work(input);
  };
  await Promise.all(Array.from({ length: Math.min(limit, inputs.length) }, worker));
  return results;
}
