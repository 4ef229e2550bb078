/**
 * Caches the result of a pure function per object: without it a pass of 800 removals among 10,000 images takes 17 instead of
 * 9 s of CPU time.
 */

import { assert } from "../model/errors.ts";

/**
 * For functions of one list entry (the same object while the runtime lists it unchanged) or of a whole list. `make`
 * must depend on nothing else; objects of a snapshot never change.
 */
export function byObject<Of extends object, Made extends object | string | number | bigint>(
  make: (of: Of) => Made,
): (of: Of) => Made {
  const made = new WeakMap<Of, Made>();
  return (of) => {
    const before = made.get(of);
    if (before !== undefined) return before;
    const result = make(of);
    made.set(of, result);
    return result;
  };
}

/**
 * For functions of several values that recur at the next look at an unchanged node, such as its lists. All properties
 * of the given object count, by identity. Remembers the last result for each value of the first property, which must be
 * an object.
 */
export function byParts<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  const made = new WeakMap<
    WeakKey,
    { readonly parts: readonly unknown[]; readonly result: Made }
  >();
  return (of) => {
    const parts: readonly unknown[] = Object.values(of);
    const [first] = parts;
    assert(typeof first === "object" && first !== null, "the first part is an object");
    const before = made.get(first);
    if (before !== undefined && parts.every((part, index) => part === before.parts[index]))
      return before.result;
    const result = make(of);
    made.set(first, { parts, result });
    return result;
  };
}

/** Returns `before` if both maps have the same content, so that what is derived from it and written of it stays valid. */
export function sameOr<K, V>(
  before: ReadonlyMap<K, V>,
  after: ReadonlyMap<K, V>,
): ReadonlyMap<K, V> {
  if (before.size !== after.size) return after;
  for (const [key, value] of after) if (before.get(key) !== value) return after;
  return before;
}
