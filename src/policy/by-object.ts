/** Caches the result of a pure function per object, for as long as the object exists. */

import { assert } from "../model/assert.ts";

/**
 * For functions of one list entry, which is the same object for as long as the runtime lists it unchanged, and of a whole
 * list. `make` must depend on nothing else: the objects of a snapshot never change.
 */
export function byObject<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  const made = new WeakMap<Of, { readonly result: Made }>();
  return (of) => {
    const before = made.get(of);
    if (before !== undefined) return before.result;
    const result = make(of);
    made.set(of, { result });
    return result;
  };
}

/**
 * For functions of several values that the next look at an unchanged node has again, such as its lists. They are given as the
 * properties of one object, all of which count: it is the same where each is the very same. For each value of the first one,
 * which is an object, the last answer is remembered.
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

/** What `make` makes, when it is asked for the first time. */
export function once<Made>(make: () => Made): () => Made {
  let made: { readonly result: Made } | null = null;
  return () => (made ??= { result: make() }).result;
}

/** A map that says the same as the one before is that one, so that what is made of it and written of it is known to be the same. */
export function sameOr<K, V>(
  before: ReadonlyMap<K, V>,
  after: ReadonlyMap<K, V>,
): ReadonlyMap<K, V> {
  if (before.size !== after.size) return after;
  for (const [key, value] of after) if (before.get(key) !== value) return after;
  return before;
}
