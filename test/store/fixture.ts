// A state directory for a test, opened as `gc` and `plan` open it, with what the store said on the way.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { imageId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { OtherWriters, WriterPresence } from "../../src/model/ports.ts";
import { duration, type Instant, instant, instantFromMs, watched } from "../../src/model/time.ts";
import { openStore, openStoreReader } from "../../src/store/open.ts";
import { aRecord } from "../support/build/values.ts";
import { directChannel } from "../support/direct-channel.ts";

export const now = instantFromMs(Date.parse("2026-01-02T03:04:05Z"));

/** As `gc` and `run` open it, but for the process of its own that writes the file there. */
export async function write(directory: string, at: Instant = now, presence?: WriterPresence) {
  const notices: string[] = [];
  const channel = directChannel({ directory, now: () => at });
  const store = await openStore({
    channel,
    directory,
    presence,
    notify: (notice) => notices.push(notice),
  });
  return { store, notices };
}

/** What tells one notice from another. */
const WORDS = [
  "new ones stay in memory",
  "crigc tries again",
  "can be written again",
  "lost",
  "the file is now",
  "every image counts as new",
];

export const said = (notices: readonly string[]): readonly string[] =>
  notices.map((notice) => WORDS.find((words) => notice.includes(words)) ?? notice);

export function read(directory: string, others?: () => OtherWriters) {
  const notices: string[] = [];
  const reader = openStoreReader({
    directory,
    notify: (notice) => notices.push(notice),
    ...(others === undefined ? {} : { others }),
  });
  return { reader, notices };
}

/** A ledger with so many images; `turn` makes one differ from another. */
export function ledgerOf(count: number, turn = 0): Ledger {
  return {
    ...emptyLedger,
    bootId: `boot ${turn}`,
    observedAt: instant(BigInt(turn)),
    uptime: duration(1n),
    watched: watched(BigInt(turn)),
    images: new Map(
      Array.from({ length: count }, (_, at) => [
        imageId(`sha256:${String(at).padStart(6, "0")}`),
        aRecord({
          firstSeenAt: instant(1n),
          firstSeenWatched: watched(1n),
          lastUsedAt: instant(BigInt(turn)),
          lastUsedWatched: watched(BigInt(turn)),
          names: "registry.example/some/name:tag",
          sizeBytes: 2n ** 63n + BigInt(at),
        }),
      ]),
    ),
  };
}

/** Names, sizes, times of change and numbers of all files: what must be the same before and after a reader. */
export function listing(directory: string): readonly string[] {
  return readdirSync(directory)
    .toSorted()
    .map((name) => {
      const { size, mtimeNs, ino, mode } = statSync(join(directory, name), { bigint: true });
      return `${name} ${size} ${mtimeNs} ${ino} ${mode}`;
    });
}
