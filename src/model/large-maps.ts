/** Maps of a large node: versions that share unchanged entries, so that changing one does not copy ten thousand; and many entries in little memory. */

/** Maximum difference of a version from its base; beyond it, the next version is a base of its own. */
const OVERLAY_MAX = 128;
const GONE = Symbol("gone");

type Overlay<K, V> = ReadonlyMap<K, V | typeof GONE>;

/** A copy of `map` with the entry. */
export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  changed(map, key, value);

/** A copy of `map` without the key; `map` itself if it lacks the key. */
export const withoutKey = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> =>
  map.has(key) ? changed(map, key, GONE) : map;

/** Keys under which two versions may differ; `null`: they share no base, so all may. */
export function changedKeys<K, V>(
  one: ReadonlyMap<K, V>,
  other: ReadonlyMap<K, V>,
): Iterable<K> | null {
  const [a, b] = [layersOf(one), layersOf(other)];
  if (a.base !== b.base) return null;
  const keys = new Set<K>();
  for (const [key, value] of a.overlay) if (b.overlay.get(key) !== value) keys.add(key);
  for (const key of b.overlay.keys()) if (!a.overlay.has(key)) keys.add(key);
  return keys;
}

interface Layers<K, V> {
  readonly base: ReadonlyMap<K, V>;
  readonly overlay: Overlay<K, V>;
}

const layersOf = <K, V>(map: ReadonlyMap<K, V>): Layers<K, V> =>
  map instanceof LayeredMap ? map.layers : { base: map, overlay: new Map() };

function changed<K, V>(map: ReadonlyMap<K, V>, key: K, value: V | typeof GONE): ReadonlyMap<K, V> {
  const { base, overlay } = layersOf(map);
  const size = map.size + Number(value !== GONE) - Number(map.has(key));
  const layered = new LayeredMap({ base, overlay: new Map(overlay).set(key, value) }, size);
  return layered.layers.overlay.size <= OVERLAY_MAX ? layered : new Map(layered);
}

class LayeredMap<K, V> implements ReadonlyMap<K, V> {
  readonly layers: Layers<K, V>;
  readonly size: number;

  constructor(layers: Layers<K, V>, size: number) {
    this.layers = layers;
    this.size = size;
  }

  get(key: K): V | undefined {
    const own = this.layers.overlay.get(key);
    if (own === undefined) return this.layers.base.get(key);
    return own === GONE ? undefined : own;
  }

  has(key: K): boolean {
    const own = this.layers.overlay.get(key);
    return own === undefined ? this.layers.base.has(key) : own !== GONE;
  }

  *entries(): MapIterator<[K, V]> {
    const { base, overlay } = this.layers;
    for (const entry of base) if (!overlay.has(entry[0])) yield entry;
    for (const [key, value] of overlay) if (value !== GONE) yield [key, value];
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

/** The engine gives a map room for four times as much whenever it is full: here it takes 0.7 MB, and with one entry more 3.4 MB. */
const PART_MAX = 16_384;

export interface FillingMap<K, V> extends ReadonlyMap<K, V> {
  set(key: K, value: V): unknown;
}

/** A map that will have about so many entries, in the order in which they came. */
export const mapFor = <K, V>(count: number): FillingMap<K, V> =>
  count <= PART_MAX ? new Map<K, V>() : new WideMap<K, V>();

/** The last item of each ID. */
export function byId<Item extends { readonly id: string }>(
  items: readonly Item[],
): ReadonlyMap<string, Item> {
  const map = mapFor<string, Item>(items.length);
  for (const item of items) map.set(item.id, item);
  return map;
}

/** Several small maps: what is not in one may be in the next. */
export class WideMap<K, V> implements FillingMap<K, V> {
  readonly #parts: Map<K, V>[] = [];
  #last = new Map<K, V>();

  constructor() {
    this.#parts.push(this.#last);
  }

  get size(): number {
    return (this.#parts.length - 1) * PART_MAX + this.#last.size;
  }

  get(key: K): V | undefined {
    for (const part of this.#parts) {
      const value = part.get(key);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  has(key: K): boolean {
    return this.#parts.some((part) => part.has(key));
  }

  set(key: K, value: V): void {
    for (const part of this.#parts) {
      if (!part.has(key)) continue;
      part.set(key, value);
      return;
    }
    if (this.#last.size === PART_MAX) this.#parts.push((this.#last = new Map()));
    this.#last.set(key, value);
  }

  /** A plain map, if one is enough. */
  whole(): ReadonlyMap<K, V> {
    return this.#parts.length === 1 ? this.#last : this;
  }

  *entries(): MapIterator<[K, V]> {
    for (const part of this.#parts) yield* part;
  }

  *keys(): MapIterator<K> {
    for (const part of this.#parts) yield* part.keys();
  }

  *values(): MapIterator<V> {
    for (const part of this.#parts) yield* part.values();
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}
