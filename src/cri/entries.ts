/** Remembers what the entries of a list were decoded to, so that a list costs what changed since the last one. */
import type { Channel, Entry, ListRequests } from "./channel.ts";
import { DigestTable } from "./digest-table.ts";
import { digestOf } from "./digest.ts";
import { type Answers, decodeAnswer, type ListMethod } from "./messages.ts";

/** An entry whose bytes were in the last list is the same object again. */
export type ItemOf<M extends ListMethod, Item> = (entry: Entry<M>) => Item;

/** How entries of one list are read. */
export interface Reading<M extends ListMethod, Item> {
  readonly itemOf: ItemOf<M, Item>;
  readonly signal: AbortSignal;
}

/** The items of one answer, or of one stream, in its order. */
export async function itemsOf<M extends ListMethod, Item>(
  channel: Channel,
  [method, request]: readonly [method: M, request: ListRequests[M]],
  { itemOf, signal }: Reading<M, Item>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  await channel.list(method, request, { signal, onEntry: (entry) => items.push(itemOf(entry)) });
  return items;
}

export interface EntryMemory<M extends ListMethod, Item> {
  /** A list, of one answer or of several parts. Its entries replace those that were known, unless `ask` fails. */
  list(ask: (itemOf: ItemOf<M, Item>) => Promise<readonly Item[]>): Promise<readonly Item[]>;
}

/** Gives back an equal string that is there already. */
export type Shared = <Text extends string>(text: Text) => Text;

/**
 * For one list of one runtime. The bytes of an entry are known by their SHA-256, because whoever makes pods and images
 * writes parts of them: a fast hash, even one with a secret seed, is no proof that nothing changed. That costs 0.5 µs an
 * entry more than such a hash; keeping the bytes and comparing them would cost 0.2 µs and 0.6 kB (docs/decisions/0007).
 *
 * Entries that a list no longer has are forgotten. A list of the same entries is the same array, in whatever order the
 * runtime gave them (containerd's is random), so that what was made of a whole list is known by it as well.
 */
export function entryMemory<M extends ListMethod, Item extends { readonly id: string }>(
  /** Of a list that has this one entry. */
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
      const items = await ask(({ method, bytes }) =>
        look.item(digestOf(bytes), () => decode(decodeAnswer(method, bytes), shared)),
      );
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

  item(digest: Int32Array, decode: () => Item): Item {
    this.#count += 1;
    const index = this.#before.indexOf(digest);
    const item = this.#before.at(index) ?? this.#fresh.at(this.#fresh.indexOf(digest));
    if (index >= 0) {
      this.#metCount += 1 - (this.#met[index] ?? 0);
      this.#met[index] = 1;
    }
    if (item !== undefined) return item;
    const decoded = decode();
    this.#fresh.add(digest, decoded);
    return decoded;
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

/** Strings that entries of one list have in common are there once. */
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

/** In any order; of an ID that is listed twice the order counts. */
function hasSameItems<Item extends { readonly id: string }>(
  before: readonly Item[],
  items: readonly Item[],
): boolean {
  if (before.length !== items.length) return false;
  const left = byId(before);
  if (left.size !== before.length) return before.every((item, index) => item === items[index]);
  return items.every((item) => left.get(item.id) === item && left.delete(item.id));
}

/** The last of each; without the pairs that a constructor would take, of which a large node has many. */
export function byId<Item extends { readonly id: string }>(
  items: readonly Item[],
): Map<string, Item> {
  const map = new Map<string, Item>();
  for (const item of items) map.set(item.id, item);
  return map;
}
