// Documents of the history read one by one, so that a single one which makes no sense is passed over.

import type { Codec } from "../codec.ts";

/** For what nothing is decided by. */
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
