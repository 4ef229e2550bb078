// Reads a state directory as the program would, without changing it.

import type { Ledger } from "../../src/model/ledger.ts";
import { stateFiles } from "../../src/node/state-files.ts";
import { openStoreReader } from "../../src/store/open.ts";

export type Recorded = {
  readonly ledger: Ledger;
  /** Of images, the oldest first. */
  readonly removals: readonly { readonly image: string; readonly atMs: number }[];
  readonly notices: readonly string[];
};

export function readState(directory: string): Recorded {
  const notices: string[] = [];
  const reader = openStoreReader({
    directory,
    files: stateFiles,
    notify: ({ message }) => notices.push(message),
  });
  try {
    const removals = reader
      .removals({ limit: 1_000_000, kinds: ["image"], results: ["removed", "already-gone"] })
      .map(({ subject, at }) => ({ image: subject, atMs: Number(at / 1_000_000n) }))
      .toReversed();
    return { ledger: reader.ledger(), removals, notices };
  } finally {
    reader[Symbol.dispose]();
  }
}
