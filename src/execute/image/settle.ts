/** Waits for space that a runtime frees with a delay, and learns whether an unknown runtime does so. */

import type { Timer } from "../../model/ports.ts";
import { type ReleaseSign, type SpaceRelease, TELLING_BYTES } from "../../policy/space/release.ts";

export const SETTLE_REMOVAL_MS = 5_000;
/** The rest is left to the next pass. */
export const SETTLE_PASS_MS = 60_000;
/** A runtime that has shown a sign of being immediate is watched for less time. */
const SECOND_WATCH_MS = 2_000;
/** Delayed space appears all at once: after a significant part, this long without more means that it was all. */
const QUIET_MS = 1_000;
const TELLING_SHARE = 8n;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

export type Settled = "at-once" | "afterwards" | "not-seen" | "not-waited";

export interface Settling {
  readonly settled: Settled;
  /** What the removal shows about the runtime; `null`: nothing. */
  readonly sign: ReleaseSign | null;
  readonly waitedMs: number;
}

export interface SettleInput {
  readonly release: SpaceRelease;
  /** Earlier signs that the runtime is immediate. */
  readonly signsBefore: number;
  readonly reportedBytes: bigint;
  /** What the removal frees at least, by the image's layers; `null`: unknown, and half the reported size is enough. */
  readonly expectedGainBytes: bigint | null;
  /** Whether the pass still needs space; passes for age, count or everything unused never wait. */
  readonly mayWait: boolean;
  readonly budgetMs: number;
  /** The gain when the call returned, compared with before it. */
  readonly gainedBytes: bigint;
  /** Measures the same again; rejects on errors. */
  readonly measure: () => Promise<bigint>;
  readonly timer: Timer;
}

/** Waits only if the runtime is not known to be immediate: up to 5 s, never beyond `budgetMs`. */
export async function settle(input: SettleInput, signal: AbortSignal): Promise<Settling> {
  const { release, reportedBytes, gainedBytes: gained } = input;
  const expected = input.expectedGainBytes ?? reportedBytes / 2n;
  if (expected < TELLING_BYTES) return { settled: "not-waited", sign: null, waitedMs: 0 };
  if (gained >= expected) return { settled: "at-once", sign: "there-at-once", waitedMs: 0 };
  if (release === "immediate" || !input.mayWait)
    return { settled: "not-waited", sign: null, waitedMs: 0 };
  const { risen, isWhole, waitedMs } = await watch(input, expected, signal);
  if (risen >= TELLING_BYTES) return { settled: "afterwards", sign: "more-followed", waitedMs };
  // A watch that was cut short has shown nothing.
  const sign = gained >= TELLING_BYTES ? "none-followed" : "nothing-seen";
  return {
    settled: release === "delayed" ? "not-seen" : "at-once",
    sign: isWhole ? sign : null,
    waitedMs,
  };
}

interface Watched {
  /** How far free space rose above its lowest since the call returned; others may write meanwhile. */
  readonly risen: bigint;
  readonly isWhole: boolean;
  readonly waitedMs: number;
}

async function watch(input: SettleInput, expected: bigint, signal: AbortSignal): Promise<Watched> {
  const { timer, measure, release, signsBefore, budgetMs } = input;
  const startNs = timer.monotonicNs();
  const waited = (): number => Number((timer.monotonicNs() - startNs) / 1_000_000n);
  const wholeMs = release === "unknown" && signsBefore > 0 ? SECOND_WATCH_MS : SETTLE_REMOVAL_MS;
  const longestMs = Math.min(wholeMs, budgetMs);
  const share = expected / TELLING_SHARE;
  const telling = share > TELLING_BYTES ? share : TELLING_BYTES;
  let lowest = input.gainedBytes;
  let risen = 0n;
  let roseMs = Infinity;
  for (
    let pauseMs = FIRST_PAUSE_MS;
    waited() < longestMs && !signal.aborted;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    await timer.sleep(Math.min(pauseMs, Math.max(1, longestMs - waited())), signal);
    const gained = await measure();
    if (gained < lowest) lowest = gained;
    if (gained - lowest > risen) {
      risen = gained - lowest;
      if (risen >= telling) roseMs = waited();
    }
    const isEnough = risen >= telling && (gained >= expected || risen >= expected);
    if (isEnough || waited() - roseMs >= QUIET_MS) break;
  }
  return { risen, isWhole: !signal.aborted && longestMs === wholeMs, waitedMs: waited() };
}
