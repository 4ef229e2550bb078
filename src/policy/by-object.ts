/** Remembers what a pure function made of an object, for as long as the object lives. */

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
