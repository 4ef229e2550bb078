/**
 * Versions of a large map that share unchanged entries. A pass forgets each image before its removal: a copy of ten
 * thousand entries would take long, and leave much garbage.
 */

/** Changes since the base; beyond this, the next version becomes a new base. */
const CHANGES_MAX = 128;

/** `null`: the base has the key, this version does not. */
type Changes<K, V> = ReadonlyMap<K, { readonly value: V } | null>;

/** A copy of `map` with the entry. */
export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  version(map, [[key, { value }]]);

/** A copy of `map` without these keys. */
export const withoutKeys = <K, V>(map: ReadonlyMap<K, V>, keys: Iterable<K>): ReadonlyMap<K, V> =>
  version(
    map,
    [...keys].map((key) => [key, null]),
  );

class LayeredMap<K, V> implements ReadonlyMap<K, V> {
  readonly base: ReadonlyMap<K, V>;
  readonly changes: Changes<K, V>;
  readonly size: number;

  constructor(base: ReadonlyMap<K, V>, changes: Changes<K, V>) {
    this.base = base;
    this.changes = changes;
    let size = base.size;
    for (const [key, change] of changes) size += Number(change !== null) - Number(base.has(key));
    this.size = size;
  }

  get(key: K): V | undefined {
    const change = this.changes.get(key);
    return change === undefined ? this.base.get(key) : change?.value;
  }

  has(key: K): boolean {
    const change = this.changes.get(key);
    return change === undefined ? this.base.has(key) : change !== null;
  }

  *entries(): MapIterator<[K, V]> {
    for (const entry of this.base) if (!this.changes.has(entry[0])) yield entry;
    for (const [key, change] of this.changes) if (change !== null) yield [key, change.value];
  }

  *keys(): MapIterator<K> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}

/** The map that this version was made from; itself if it is none. */
const baseOf = <K, V>(map: ReadonlyMap<K, V>): ReadonlyMap<K, V> =>
  map instanceof LayeredMap ? map.base : map;

const changesOf = <K, V>(map: ReadonlyMap<K, V>): Changes<K, V> =>
  map instanceof LayeredMap ? map.changes : new Map();

function version<K, V>(
  map: ReadonlyMap<K, V>,
  changes: Iterable<readonly [K, { readonly value: V } | null]>,
): ReadonlyMap<K, V> {
  const layered = new LayeredMap(baseOf(map), new Map([...changesOf(map), ...changes]));
  return layered.changes.size <= CHANGES_MAX ? layered : new Map(layered);
}
