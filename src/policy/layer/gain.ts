/** How much a removal frees on disk for each byte that layers let expect: reported sizes may be compressed, while blobs and unpacked layers both go. */
import type { GainRecord, Ledger } from "../../model/ledger.ts";
import type { ImageItem } from "../../model/outcome.ts";
import type { Bounds } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { releaseKey } from "../space/release.ts";

/** Measured bytes for a thousand estimated ones. */
export type Gain = bigint;

const ONE = 1000n;
/** Removals after which a runtime version's gain is known. */
const REMOVALS_MIN = 3;
/** What was learned from more removals than this counts for half, so that a node whose images change is followed. */
const REMOVALS_MAX = 200;
/** Below this a gain cannot be told from what other programs do to the disk. */
const TELLING_BYTES = 1_048_576n;
/** Images that take a fifth or five times their reported size were never seen; content that is kept for other reasons was. */
const GAIN_MIN = 200n;
const GAIN_MAX = 5000n;

/** `null`: not learned yet. */
export function gainOf(ledger: Pick<Ledger, "gains">, runtime: RuntimeInfo): Gain | null {
  const record = ledger.gains.get(releaseKey(runtime));
  if (record === undefined || record.removals < REMOVALS_MIN) return null;
  if (record.estimatedBytes < TELLING_BYTES) return null;
  const gain = (record.measuredBytes * ONE) / record.estimatedBytes;
  return gain < GAIN_MIN ? GAIN_MIN : gain > GAIN_MAX ? GAIN_MAX : gain;
}

/** An estimate in reported sizes as one of bytes on disk. */
export const scaled = (bounds: Bounds, gain: Gain | null): Bounds =>
  gain === null
    ? bounds
    : {
        lowerBytes: (bounds.lowerBytes * gain) / ONE,
        estimateBytes: (bounds.estimateBytes * gain) / ONE,
        upperBytes: (bounds.upperBytes * gain) / ONE,
      };

/** The ledger after a pass that was planned with this one; the same where the pass teaches nothing. */
export function rememberGain(
  ledger: Ledger,
  pass: {
    readonly runtime: RuntimeInfo;
    /** What the plan's estimates were scaled by. */
    readonly gain: Gain | null;
    readonly items: readonly ImageItem[];
  },
): Ledger {
  const key = releaseKey(pass.runtime);
  let record: GainRecord = ledger.gains.get(key) ?? {
    removals: 0,
    estimatedBytes: 0n,
    measuredBytes: 0n,
  };
  const before = record;
  for (const { candidate, result } of pass.items) {
    if (result.kind !== "removed" || candidate.frees === undefined) continue;
    const estimatedBytes = (candidate.frees.estimateBytes * ONE) / (pass.gain ?? ONE);
    record = {
      removals: record.removals + 1,
      estimatedBytes: record.estimatedBytes + estimatedBytes,
      measuredBytes: record.measuredBytes + result.measuredBytes,
    };
    if (record.removals >= REMOVALS_MAX) record = halved(record);
  }
  return record === before ? ledger : { ...ledger, gains: new Map(ledger.gains).set(key, record) };
}

const halved = (record: GainRecord): GainRecord => ({
  removals: Math.floor(record.removals / 2),
  estimatedBytes: record.estimatedBytes / 2n,
  measuredBytes: record.measuredBytes / 2n,
});
