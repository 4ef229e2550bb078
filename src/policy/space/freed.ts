/**
 * What past removals freed. How much a removal frees per byte expected from layers: reported sizes may be compressed, while
 * a removal frees blobs and unpacked layers. And removals that give no space back: how many in a row end a pass, and when
 * the next image may be tried; something else holds the content then: another namespace, a lease, or a runtime that cannot
 * write its metadata.
 */
import type { GainRecord, Ledger, NothingFreedRecord } from "../../model/ledger.ts";
import type { ImageItem, Settled } from "../../model/pass.ts";
import type { Bounds } from "../../model/plan.ts";
import type { Filesystem, RuntimeInfo } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  hours,
  type ObservedTime,
  watched,
  watchedSince,
} from "../../model/time.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import { releaseKey } from "../version.ts";
import { BYTES_PER_REPORTED_BYTE } from "./disk.ts";

/** Below this a removal cannot be told from what other programs do to the disk. */
export const TELLING_BYTES = 1_048_576n;
/** A removal gave something back if it gained at least this part of its estimate. */
const GAVE_BACK_PART = 10n;
/** What the smallest layer of an image's own takes at least; a gain of this much is more than nothing. */
const OWN_LAYER_BYTES = 65_536n;
/** Removals in a row that end a pass, if the layers of every image are known. */
const KNOWN_MAX = 3;
/** The same whatever is known. */
const STREAK_MAX = 10;
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
  knownSharers >= KNOWN_MAX || removals >= STREAK_MAX;

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

const noGain: GainRecord = {
  removals: 0,
  estimatedBytes: 0n,
  measuredBytes: 0n,
  recentRemovals: 0,
  largestPerMille: 0n,
  measuredWatched: watched(0n),
};

/** Both per thousand reported bytes; learned only where nothing but compression explains the difference. */
export interface Gain {
  /** What removals freed altogether; `null`: not learned yet. */
  readonly typical: bigint | null;
  /** The most that an image may take. */
  readonly most: bigint;
}

const ONE = 1000n;
const MOST_UNMEASURED = BYTES_PER_REPORTED_BYTE * ONE;
/** Removals after which a gain is known. */
const REMOVALS_MIN = 3;
/** After this many, sums count for half and the largest is measured again, so that both follow a node whose images change. */
const REMOVALS_MAX = 200;
/** What was measured longer ago no longer bounds anything: a factor that is too low would prevent its own correction. */
const LARGEST_FOR = hours(24);
/** A removal that frees less than this share shows that something else keeps the content, not how it is compressed. */
const TELLING_SHARE = 10n;

/** Of a runtime version, on this node. */
export function gainOf(
  { gains, watched: now }: Pick<Ledger, "gains" | "watched">,
  runtime: Pick<RuntimeInfo, "name" | "version">,
): Gain {
  const record = gains.get(releaseKey(runtime)) ?? noGain;
  const { removals, estimatedBytes, measuredBytes } = record;
  const isKnown = removals >= REMOVALS_MIN && estimatedBytes > 0n;
  const typical = isKnown ? (measuredBytes * ONE) / estimatedBytes : null;
  return { typical, most: mostOf(current(record, now), runtime.name.toLowerCase()) };
}

function mostOf({ recentRemovals, largestPerMille }: GainRecord, runtime: string): bigint {
  // Its sizes are those of unpacked layers.
  if (runtime === "cri-o") return ONE;
  if (recentRemovals < REMOVALS_MIN) return MOST_UNMEASURED;
  const most = largestPerMille + largestPerMille / 4n;
  // Docker does not compress either. Others keep blobs beside the layers that they unpacked from them.
  const least = runtime === "docker" ? ONE : 2n * ONE;
  return most < least ? least : most;
}

/** Without a largest that was measured too long ago. */
const current = (record: GainRecord, now: ObservedTime): GainRecord =>
  watchedSince(now, record.measuredWatched) > LARGEST_FOR
    ? { ...record, recentRemovals: 0, largestPerMille: 0n }
    : record;

/**
 * Converts an estimate in reported sizes to bytes on disk. What other images taught is an expectation, not a bound: an
 * image frees at least what the runtime reports, unless others freed less, or images of unknown layers share its own.
 */
export function scaled(
  bounds: Bounds,
  { typical, most }: Gain,
  { sharersKnown }: { readonly sharersKnown: boolean },
): Bounds {
  const perMille = smaller(typical ?? ONE, most);
  return {
    lowerBytes: sharersKnown ? (bounds.lowerBytes * smaller(perMille, ONE)) / ONE : 0n,
    estimateBytes: (bounds.estimateBytes * perMille) / ONE,
    upperBytes: (bounds.upperBytes * most) / ONE,
  };
}

/** Whether the layers bound what a removal frees to within a quarter, so that the rest of the gain is compression. */
const isExact = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): boolean =>
  (upperBytes - lowerBytes) * 4n <= estimateBytes;

/** Whether the measured gain is this image's and complete: a wait may also have shown what earlier ones freed. */
export const isWholeGain = (settled: Settled): boolean =>
  settled === "at-once" || settled === "not-waited";

/** The ledger after these removals; the same if they taught nothing. */
export function rememberGain(
  ledger: Ledger,
  pass: { readonly runtime: RuntimeInfo; readonly items: readonly ImageItem[] },
): Ledger {
  const key = releaseKey(pass.runtime);
  const { watched: now, gains } = ledger;
  const before = gains.get(key) ?? noGain;
  const after = pass.items.reduce((record, { candidate, result }) => {
    const { unscaled, sharersKnown = false } = candidate;
    if (result.kind !== "removed" || !isWholeGain(result.settled)) return record;
    if (!sharersKnown || unscaled === undefined || !isExact(unscaled)) return record;
    const estimated = unscaled.estimateBytes;
    const { measuredBytes } = result;
    if (estimated < TELLING_BYTES || measuredBytes * TELLING_SHARE < estimated) return record;
    // Whatever is more was deleted by others.
    const measured = smaller(measuredBytes, BYTES_PER_REPORTED_BYTE * estimated);
    const recent = current(record, now);
    return { ...withRemoval(recent, estimated, measured), measuredWatched: now };
  }, before);
  return after === before ? ledger : { ...ledger, gains: new Map(gains).set(key, after) };
}

function withRemoval(before: GainRecord, estimated: bigint, measured: bigint): GainRecord {
  const perMille = (measured * ONE) / estimated;
  const { largestPerMille } = before;
  const after = {
    ...before,
    removals: before.removals + 1,
    estimatedBytes: before.estimatedBytes + estimated,
    measuredBytes: before.measuredBytes + measured,
    recentRemovals: before.recentRemovals + 1,
    largestPerMille: perMille > largestPerMille ? perMille : largestPerMille,
  };
  if (after.removals < REMOVALS_MAX) return after;
  return {
    ...after,
    removals: Math.floor(after.removals / 2),
    estimatedBytes: after.estimatedBytes / 2n,
    measuredBytes: after.measuredBytes / 2n,
    recentRemovals: 0,
    largestPerMille: 0n,
  };
}
