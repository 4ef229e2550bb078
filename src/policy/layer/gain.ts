/**
 * How much a removal frees per byte expected from layers: reported sizes may be compressed, while a removal frees blobs
 * and unpacked layers.
 */
import type { ChainId } from "../../model/ids.ts";
import { type GainRecord, type Ledger, noGain } from "../../model/ledger.ts";
import type { ImageItem, Settled } from "../../model/outcome.ts";
import type { Bounds } from "../../model/plan.ts";
import type { Image, RuntimeInfo } from "../../model/snapshot.ts";
import { smaller } from "../../model/values.ts";
import { repositoryOfNames } from "../image/reference.ts";
import { releaseKey, releaseOf, type SpaceRelease } from "../space/release.ts";

export interface Gain {
  /** Measured bytes per thousand estimated ones. */
  readonly perMille: bigint;
  /**
   * Whether it was learned from images of the same repository; otherwise from the whole node, which may compress
   * differently.
   */
  readonly isOwn: boolean;
}

/** The gain for an image; `null` if not learned yet. */
export type GainOf = (image: Pick<Image, "repoTags" | "repoDigests">) => Gain | null;

const ONE = 1000n;
/** Removals after which a gain is known, for a runtime version or a repository. */
const REMOVALS_MIN = 3;
/** Beyond this many removals what was learned counts for half, so that the gain follows a node whose images change. */
const REMOVALS_MAX = 200;
/** Below this a gain cannot be told from what other programs do to the disk. */
const TELLING_BYTES = 1_048_576n;
/** No image takes less than a fifth or more than five times its reported size, but content may be kept for other reasons. */
const GAIN_MIN = 200n;
const GAIN_MAX = 5000n;
/** Images of one repository compress alike, but not equally: their bounds are this far around what was learned. */
const OWN_TOLERANCE = 250n;
/** Maximum number of remembered repositories; beyond it, those whose last removal is oldest are dropped. */
const REPOSITORIES_MAX = 500;

/** Of all removals of this runtime version; `null` if not learned yet. */
export const nodeGain = (ledger: Pick<Ledger, "gains">, runtime: RuntimeInfo): bigint | null =>
  perMilleOf(ledger.gains.get(releaseKey(runtime)));

/** Images of one repository compress alike; if theirs is not learned, the node's gain is used. */
export function gainsOf(ledger: Pick<Ledger, "gains">, runtime: RuntimeInfo): GainOf {
  const ofNode = nodeGain(ledger, runtime);
  return (image) => {
    const key = repositoryKey(runtime, image);
    const own = key === null ? null : perMilleOf(ledger.gains.get(key));
    if (own !== null) return { perMille: own, isOwn: true };
    return ofNode === null ? null : { perMille: ofNode, isOwn: false };
  };
}

function perMilleOf(sum: GainRecord | undefined): bigint | null {
  if (sum === undefined || sum.removals < REMOVALS_MIN) return null;
  if (sum.estimatedBytes < TELLING_BYTES) return null;
  const gain = (sum.measuredBytes * ONE) / sum.estimatedBytes;
  return gain < GAIN_MIN ? GAIN_MIN : gain > GAIN_MAX ? GAIN_MAX : gain;
}

function repositoryKey(runtime: RuntimeInfo, image: Parameters<GainOf>[0]): string | null {
  const repository = repositoryOfNames([...image.repoTags, ...image.repoDigests]);
  return repository === null ? null : `${releaseKey(runtime)} ${repository}`;
}

/**
 * Converts an estimate in reported sizes to bytes on disk. What other images taught is an expectation, not a bound: an
 * image frees at least what the runtime reports, unless others freed less, and at most five times as much.
 */
export function scaled(bounds: Bounds, gain: Gain | null): Bounds {
  const { perMille, isOwn } = gain ?? { perMille: ONE, isOwn: false };
  const least = isOwn ? perMille - (perMille * OWN_TOLERANCE) / ONE : smaller(perMille, ONE);
  const most = isOwn ? perMille + (perMille * OWN_TOLERANCE) / ONE : GAIN_MAX;
  return {
    lowerBytes: (bounds.lowerBytes * least) / ONE,
    estimateBytes: (bounds.estimateBytes * perMille) / ONE,
    upperBytes: (bounds.upperBytes * most) / ONE,
  };
}

/** Whether the layers bound what a removal frees to within a quarter, so that the rest of the gain is compression. */
const isExact = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): boolean =>
  (upperBytes - lowerBytes) * 4n <= estimateBytes;

/** Whether the measured gain is complete: not if space may still appear that was not waited for. */
export const isWholeGain = (settled: Settled, release: SpaceRelease): boolean =>
  settled === "not-waited" ? release === "immediate" : settled !== "not-seen";

/** The ledger after a pass planned with these gains; the same if the pass taught nothing. */
export function rememberGain(
  ledger: Ledger,
  pass: {
    readonly runtime: RuntimeInfo;
    readonly items: readonly ImageItem[];
  },
): Ledger {
  const { runtime } = pass;
  const key = releaseKey(runtime);
  const release = releaseOf(ledger, runtime);
  const gains = new Map(ledger.gains);
  let isTaught = false;
  for (const { candidate, result } of pass.items) {
    if (result.kind !== "removed" || !isWholeGain(result.settled, release)) continue;
    const { image, unscaled, leaves = null } = candidate;
    if (unscaled === undefined) continue;
    const { measuredBytes } = result;
    const own = repositoryKey(runtime, image);
    const learned = isExact(unscaled)
      ? (before: GainRecord) => withRemoval(before, unscaled.estimateBytes, measuredBytes)
      : (before: GainRecord) => {
          const perMille = perMilleOf(before) ?? perMilleOf(gains.get(key)) ?? ONE;
          const freed = (measuredBytes * ONE) / perMille;
          return leaves === null ? before : withLeft(before, leaves, image.sizeBytes - freed);
        };
    for (const one of isExact(unscaled) ? [key, own] : [own]) {
      if (one === null) continue;
      const record = learned(gains.get(one) ?? noGain);
      // Keeps the entry that was taught last at the end.
      gains.delete(one);
      gains.set(one, record);
      isTaught = true;
    }
  }
  return isTaught ? { ...ledger, gains: bounded(gains) } : ledger;
}

function withRemoval(before: GainRecord, estimated: bigint, measured: bigint): GainRecord {
  const removals = before.removals + 1;
  const estimatedBytes = before.estimatedBytes + estimated;
  const measuredBytes = before.measuredBytes + measured;
  if (removals < REMOVALS_MAX) return { ...before, removals, estimatedBytes, measuredBytes };
  return {
    ...before,
    removals: Math.floor(removals / 2),
    estimatedBytes: estimatedBytes / 2n,
    measuredBytes: measuredBytes / 2n,
  };
}

/**
 * What an image left to others, as its removal showed: averaged with the known value, so that a disturbed measurement
 * counts for less.
 */
function withLeft({ left, ...before }: GainRecord, chain: ChainId, bytes: bigint): GainRecord {
  const shown = bytes > 0n ? bytes : 0n;
  const isSame = left?.chain === chain;
  return { ...before, left: { chain, bytes: isSame ? (left.bytes + shown) / 2n : shown } };
}

function bounded(gains: ReadonlyMap<string, GainRecord>): ReadonlyMap<string, GainRecord> {
  const ofRepositories = [...gains.keys()].filter((key) => key.includes(" "));
  const tooMany = ofRepositories.slice(0, Math.max(0, ofRepositories.length - REPOSITORIES_MAX));
  if (tooMany.length === 0) return gains;
  const dropped = new Set(tooMany);
  return new Map([...gains].filter(([key]) => !dropped.has(key)));
}
