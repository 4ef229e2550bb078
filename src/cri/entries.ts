/** Caches decoded list entries, so that a list costs only what changed since the last one. */
import { byId } from "../model/values.ts";
import type { Channel, Entry, ListRequests } from "./channel.ts";
import { decodeAnswer } from "./codec.ts";
import type { Answers, ListMethod } from "./messages.ts";

/** Returns the same object for an entry whose bytes were in the last list. */
export type ItemOf<M extends ListMethod, Item> = (...entry: Entry<M>) => Item;

/** How to read the entries of one list. */
export interface Reading<M extends ListMethod, Item> {
  readonly itemOf: ItemOf<M, Item>;
  readonly signal: AbortSignal;
}

/** The items of one response or stream, in order. */
export async function itemsOf<M extends ListMethod, Item>(
  channel: Channel,
  [method, request]: readonly [method: M, request: ListRequests[M]],
  { itemOf, signal }: Reading<M, Item>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  await channel.list(method, request, {
    signal,
    onEntry: (of, bytes) => items.push(itemOf(of, bytes)),
  });
  return items;
}

export interface EntryCache<M extends ListMethod, Item> {
  /** A list, from one response or several parts. Its entries replace the cached ones, unless `ask` fails. */
  list(ask: (itemOf: ItemOf<M, Item>) => Promise<readonly Item[]>): Promise<readonly Item[]>;
}

/** Returns an equal string that exists already, if there is one. */
export type StringPool = <Text extends string>(text: Text) => Text;

/** In hex. */
export const digestOf = (content: Buffer | string): string => Bun.SHA256.hash(content, "hex");

/**
 * For one list of one runtime. Entries are recognised by the SHA-256 of their bytes, because authors of pods and images
 * control parts of them: a fast hash, even one with a secret seed, proves nothing (docs/decisions/0007).
 *
 * Entries that a list no longer has are dropped. Lists with the same entries in any order (containerd's is random) are
 * the same array, so that results derived from a whole list can be cached by it too.
 */
export function entryCache<M extends ListMethod, Item extends { readonly id: string }>(
  /** From a list with this one entry. */
  decode: (list: Answers[M], shared: StringPool) => Item,
  { onNewEntry, counting = (items) => items }: CacheOptions<Item>,
): EntryCache<M, Item> {
  const known = new Map<string, CachedEntry<Item>>();
  let round = 0;
  let last: readonly Item[] = [];
  /** Each known entry is in the last list, once. */
  let isLastWhole = true;
  return {
    list: async (ask) => {
      const own = (round += 1);
      const seen = { count: 0, fresh: 0 };
      const shared = stringPool();
      const items = await ask((method, bytes) => {
        const digest = digestOf(bytes);
        let entry = known.get(digest);
        if (entry === undefined) {
          entry = { item: decode(decodeAnswer(method, bytes), shared), round: 0 };
          known.set(digest, entry);
          seen.fresh += 1;
          onNewEntry();
        }
        if (entry.round !== own) seen.count += 1;
        entry.round = own;
        return entry.item;
      });
      const isSame = seen.fresh === 0 && seen.count === known.size && items.length === seen.count;
      if (isSame && isLastWhole) return last;
      for (const [digest, entry] of known) if (entry.round !== own) known.delete(digest);
      const counted = counting(items);
      if (!hasSameItems(last, counted)) last = counted;
      isLastWhole = last.length === known.size && byId(last).size === last.length;
      return last;
    },
  };
}

interface CacheOptions<Item> {
  readonly onNewEntry: () => void;
  /** Which of the entries count; by default all. */
  readonly counting?: (items: readonly Item[]) => readonly Item[];
}

interface CachedEntry<Item> {
  readonly item: Item;
  /** The number of the list that it was in last. */
  round: number;
}

/** Stores strings that entries of one list share only once. */
function stringPool(): StringPool {
  const pool = new Map<string, string>();
  return <Text extends string>(text: Text): Text => {
    const there = pool.get(text);
    if (there === undefined) pool.set(text, text);
    // Equal text is of the same brand.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return (there ?? text) as Text;
  };
}

/** In any order; if an ID is listed twice, the order matters. */
function hasSameItems<Item extends { readonly id: string }>(
  before: readonly Item[],
  items: readonly Item[],
): boolean {
  if (before.length !== items.length) return false;
  const known = byId(before);
  if (known.size !== before.length) return before.every((item, index) => item === items[index]);
  return items.every((item) => known.get(item.id) === item) && byId(items).size === items.length;
}
