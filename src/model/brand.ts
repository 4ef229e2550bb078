/** Nominal types over primitives, so that an image ID is never passed where a container ID is meant. */
declare const brand: unique symbol;

/** `T`, told apart from every other use of the same primitive by `Name`. Costs nothing at run time. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
