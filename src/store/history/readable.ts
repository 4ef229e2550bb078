// Reads documents of the history one by one, skipping those that are invalid.

import type { Codec } from "../codec.ts";

/** For records that no decision depends on. */
export function readable<Value>(
  documents: readonly string[],
  codec: Codec<Value>,
): readonly Value[] {
  return documents.flatMap((document) => {
    try {
      return [codec.read(JSON.parse(document))];
    } catch {
      return [];
    }
  });
}
