/** Caches decoded list entries, so that a list costs only what changed since the last one. */
import { byId } from "../model/large-maps.ts";
import type { Channel, Entry, ListRequests } from "./channel.ts";
import { digestOf, DigestTable } from "./digest-table.ts";
import { type Answers, decodeAnswer, type ListMethod } from "./messages.ts";

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

export interface EntryMemory<M extends ListMethod, Item> {
  /** A list, from one response or several parts. Its entries replace the cached ones, unless `ask` fails. */
  list(ask: (itemOf: ItemOf<M, Item>) => Promise<readonly Item[]>): Promise<readonly Item[]>;
}

/** Returns an equal string that exists already, if there is one. */
export type Shared = <Text extends string>(text: Text) => Text;

/**
 * For one list of one runtime. Entries are recognised by the SHA-256 of their bytes, because authors of pods and images
 * control parts of them: a fast hash, even one with a secret seed, proves nothing. This costs 0.5 µs more per entry
 * than such a hash; comparing the bytes themselves would save 0.2 µs and cost 0.6 kB (docs/decisions/0007).
 *
 * Entries that a list no longer has are dropped. Lists with the same entries in any order (containerd's is random) are
 * the same array, so that results derived from a whole list can be cached by it too.
 */
export function entryMemory<M extends ListMethod, Item extends { readonly id: string }>(
  /** From a list with this one entry. */
  decode: (list: Answers[M], shared: Shared) => Item,
  /** Which of the entries count. */
  counting: (items: readonly Item[]) => readonly Item[] = (items) => items,
): EntryMemory<M, Item> {
  let known = new DigestTable<Item>();
  let last: readonly Item[] = [];
  /** Of the entries that are known each stands in the last list, once. */
  let isLastWhole = true;
  return {
    list: async (ask) => {
      const before = known;
      const look = new Look(before);
      const shared = stringPool();
      const items = await ask((method, bytes) => {
        const digest = digestOf(bytes);
        return look.find(digest) ?? look.add(digest, decode(decodeAnswer(method, bytes), shared));
      });
      if (look.isSame && isLastWhole && known === before) return last;
      known = look.known();
      const counted = counting(items);
      if (!hasSameItems(last, counted)) last = counted;
      isLastWhole = last.length === known.size && byId(last).size === last.length;
      return last;
    },
  };
}

/** What one list meets of what is known, and what is new in it. */
class Look<Item> {
  readonly #before: DigestTable<Item>;
  readonly #met: Uint8Array;
  readonly #fresh = new DigestTable<Item>();
  #metCount = 0;
  #count = 0;

  constructor(before: DigestTable<Item>) {
    this.#before = before;
    this.#met = new Uint8Array(before.size);
  }

  find(digest: Int32Array): Item | undefined {
    this.#count += 1;
    const index = this.#before.indexOf(digest);
    if (index < 0) return this.#fresh.at(this.#fresh.indexOf(digest));
    this.#metCount += 1 - (this.#met[index] ?? 0);
    this.#met[index] = 1;
    return this.#before.at(index);
  }

  add(digest: Int32Array, item: Item): Item {
    this.#fresh.add(digest, item);
    return item;
  }

  /** Everything that was known was met once, and nothing else. */
  get isSame(): boolean {
    return this.#count === this.#before.size && this.#metCount === this.#count;
  }

  known(): DigestTable<Item> {
    if (this.#fresh.size === 0 && this.#metCount === this.#before.size) return this.#before;
    if (this.#metCount > 0) this.#fresh.addMarked(this.#before, this.#met);
    return this.#fresh;
  }
}

/** Stores strings that entries of one list share only once. */
function stringPool(): Shared {
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
