/**
 * How much a removal frees per byte expected from layers: reported sizes may be compressed, while a removal frees blobs
 * and unpacked layers. Learned only where nothing but compression explains the difference.
 */
import type { GainRecord, Ledger } from "../../model/ledger.ts";
import type { ImageItem, Settled } from "../../model/outcome.ts";
import type { Bounds } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { hours, watched as asWatched, watchedSince } from "../../model/time.ts";
import { smaller } from "../../model/values.ts";
import { BYTES_PER_REPORTED_BYTE } from "../space/futility.ts";
import { releaseKey } from "../version.ts";

const noGain: GainRecord = {
  removals: 0,
  estimatedBytes: 0n,
  measuredBytes: 0n,
  recentRemovals: 0,
  largestPerMille: 0n,
  measuredWatched: asWatched(0n),
};

/** Both per thousand reported bytes. */
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
/** Below this a gain cannot be told from what other programs do to the disk. */
const TELLING_BYTES = 1_048_576n;
/** A removal that frees less than this share shows that something else keeps the content, not how it is compressed. */
const TELLING_SHARE = 10n;

/** Of a runtime version, on this node. */
export function gainOf(
  { gains, watched }: Pick<Ledger, "gains" | "watched">,
  runtime: Pick<RuntimeInfo, "name" | "version">,
): Gain {
  const record = gains.get(releaseKey(runtime)) ?? noGain;
  const { removals, estimatedBytes, measuredBytes } = record;
  const isKnown = removals >= REMOVALS_MIN && estimatedBytes > 0n;
  const typical = isKnown ? (measuredBytes * ONE) / estimatedBytes : null;
  return { typical, most: mostOf(current(record, watched), runtime.name.toLowerCase()) };
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
const current = (record: GainRecord, watched: Ledger["watched"]): GainRecord =>
  watchedSince(watched, record.measuredWatched) > LARGEST_FOR
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
  const { watched, gains } = ledger;
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
    const recent = current(record, watched);
    return { ...withRemoval(recent, estimated, measured), measuredWatched: watched };
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
