/**
 * Removals that give no space back: how many in a row end a pass, and when the next image may be tried. Something else
 * holds the content then: another namespace, a lease, or a runtime that cannot write its metadata.
 */

import type { Ledger, NothingFreedRecord } from "../../model/ledger.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import { type Duration, duration, hours, watched, watchedSince } from "../../model/time.ts";
import { atLeastZero } from "../../model/values.ts";
import type { Facts } from "../facts.ts";

/** Below this a removal cannot be told from what other programs do to the disk. */
export const TELLING_BYTES = 1_048_576n;
/** A removal gave something back if it gained at least this part of its estimate. */
const GAVE_BACK_PART = 10n;
/** What the smallest layer of an image's own takes at least; a gain of this much is more than nothing. */
const OWN_LAYER_BYTES = 65_536n;
/** Removals in a row that end a pass, if the layers of every image are known. */
export const KNOWN_MAX = 3;
/** The same whatever is known. */
const REMOVALS_MAX = 10;
/** By how many percent of its capacity available space has to rise for a filesystem to count as another one. */
const RISE_PERCENT = 2n;
const LONGEST_PAUSE = hours(24);

/** Removals in a row on one filesystem that gave nothing back. */
export interface Streak {
  readonly knownSharers: number;
  readonly removals: number;
  /** Of those of this pass. */
  readonly estimatedBytes: bigint;
  readonly gainedBytes: bigint;
}

export const noStreak: Streak = {
  knownSharers: 0,
  removals: 0,
  estimatedBytes: 0n,
  gainedBytes: 0n,
};

export interface Removed {
  readonly estimatedBytes: bigint;
  /** What it has to free at least by the layers of all images; `null` if an image with unknown layers may share it. */
  readonly leastBytes: bigint | null;
}

/** `gainedBytes`: less what the filesystem gained or lost without the removal. */
export function afterRemoval(
  streak: Streak,
  { estimatedBytes, leastBytes }: Removed,
  gainedBytes: bigint,
): Streak {
  if (estimatedBytes < TELLING_BYTES) return streak;
  const isSure = leastBytes !== null && leastBytes >= TELLING_BYTES;
  const judgedBy = isSure ? leastBytes : estimatedBytes;
  if (gainedBytes * GAVE_BACK_PART >= judgedBy) return noStreak;
  // Where sizes do not tell how they are divided, the estimate is a middle, and an image may free its own layers alone.
  if (leastBytes !== null && !isSure && gainedBytes >= OWN_LAYER_BYTES) return noStreak;
  return {
    knownSharers: streak.knownSharers + (isSure ? 1 : 0),
    removals: streak.removals + 1,
    estimatedBytes: streak.estimatedBytes + estimatedBytes,
    gainedBytes: streak.gainedBytes + atLeastZero(gainedBytes),
  };
}

/** Space that appeared after the removals were answered. */
export function afterRise(streak: Streak, roseBytes: bigint): Streak {
  const gainedBytes = streak.gainedBytes + atLeastZero(roseBytes);
  const { estimatedBytes } = streak;
  const isEnough = estimatedBytes > 0n && gainedBytes * GAVE_BACK_PART >= estimatedBytes;
  return isEnough ? noStreak : { ...streak, gainedBytes };
}

export const givesNothing = ({
  knownSharers,
  removals,
}: Pick<Streak, "knownSharers" | "removals">): boolean =>
  knownSharers >= KNOWN_MAX || removals >= REMOVALS_MAX;

/** A filesystem after a pass that removed something. */
export interface FreedHere extends Pick<Filesystem, "path"> {
  readonly streak: Streak;
  /** A removal of the pass gave something back. */
  readonly gaveBack: boolean;
  /** The streak ended the pass. */
  readonly ended: boolean;
  readonly reading: Pick<Filesystem, "availableBytes" | "capacityBytes">;
}

/** The ledger after a pass; `period`: the first pause, which doubles up to a day. */
export function rememberNothingFreed(
  ledger: Ledger,
  freed: readonly FreedHere[],
  period: Duration,
): Ledger {
  if (freed.every(({ path, streak }) => streak.removals === 0 && !ledger.nothingFreed.has(path)))
    return ledger;
  const nothingFreed = new Map(ledger.nothingFreed);
  for (const { path, streak, gaveBack, ended, reading } of freed) {
    const before = gaveBack ? undefined : nothingFreed.get(path);
    if (streak.removals === 0) {
      nothingFreed.delete(path);
      continue;
    }
    const pauses = (before?.pauses ?? 0) + (ended ? 1 : 0);
    nothingFreed.set(path, {
      knownSharers: Math.max(streak.knownSharers, before?.knownSharers ?? 0),
      removals: Math.max(streak.removals, before?.removals ?? 0),
      availableBytes: reading.availableBytes,
      capacityBytes: reading.capacityBytes,
      pauses,
      retryWatched: ended
        ? watched(ledger.watched + pauseAfter(pauses, period))
        : (before?.retryWatched ?? ledger.watched),
    });
  }
  return { ...ledger, nothingFreed };
}

function pauseAfter(pauses: number, period: Duration): bigint {
  const pause = period * 2n ** BigInt(Math.min(pauses - 1, 20));
  return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}

/** Drops the records of filesystems that are gone or have become others. */
export function stillNothingFreed(
  records: Ledger["nothingFreed"],
  filesystems: readonly Filesystem[],
): Ledger["nothingFreed"] {
  const still = [...records].filter(([path, record]) =>
    filesystems.some((one) => one.path === path && isSame(one, record)),
  );
  return new Map(still);
}

const isSame = (now: Filesystem, then: NothingFreedRecord): boolean =>
  now.capacityBytes === then.capacityBytes &&
  (now.availableBytes - then.availableBytes) * 100n < RISE_PERCENT * now.capacityBytes;

/** By device: how long no image is removed there; 0 if one may be tried. Empty for a removal by hand. */
export function pausesOf(facts: Facts): ReadonlyMap<string, Duration> {
  const { snapshot, ledger, limits, purpose } = facts;
  if (purpose.kind === "all-unused" || limits.images.accounting === "reported") return new Map();
  return new Map(
    snapshot.filesystems.flatMap(({ device, path }) => {
      const record = ledger.nothingFreed.get(path);
      if (record === undefined || record.pauses === 0) return [];
      const left = watchedSince(record.retryWatched, ledger.watched);
      return [[device, duration(atLeastZero(left))] as const];
    }),
  );
}
