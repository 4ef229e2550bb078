/** Waits for the space that a removal gives back, where the runtime is known to be late or not known yet. */

import type { ReleaseRecord } from "../model/ledger.ts";
import type { Timer } from "./ports.ts";

/** Longest wait for one removal. */
export const SETTLE_REMOVAL_MS = 5_000;
/** Longest wait in one pass; what is left then is for the next pass. */
export const SETTLE_PASS_MS = 60_000;
/** Removals with their space there at once that make a runtime prompt. */
const PROMPT_REMOVALS = 3;
/** Below this a gain cannot be told from what other programs do to the disk, so nothing is learned and nothing waited for. */
const TELLING_BYTES = 65_536n;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

export type Settled = "at-once" | "afterwards" | "not-seen" | "not-waited";

export interface Settling {
  readonly settled: Settled;
  readonly waitedMs: number;
}

/** A runtime is late as soon as space once came afterwards, and prompt after three removals that were there at once. */
export function releaseKind(record: ReleaseRecord): "prompt" | "late" | "unknown" {
  if (record.lateRemovals > 0) return "late";
  return record.promptRemovals >= PROMPT_REMOVALS ? "prompt" : "unknown";
}

/** What one more removal teaches. Removals that taught nothing leave the record as it is. */
export function learnRelease(
  record: ReleaseRecord,
  reportedBytes: bigint,
  settled: Settled,
): ReleaseRecord {
  if (reportedBytes < TELLING_BYTES) return record;
  if (settled === "at-once" && record.promptRemovals < PROMPT_REMOVALS) {
    return { ...record, promptRemovals: record.promptRemovals + 1 };
  }
  if (settled === "afterwards") return { ...record, lateRemovals: record.lateRemovals + 1 };
  return record;
}

/**
 * Waits until at least half of `reportedBytes` has appeared, 5 s at most and never past `budgetMs`.
 * `gainedBytes` measures what has appeared since before the removal; errors of the measurement go to the caller.
 */
export async function settle(
  input: {
    readonly release: ReleaseRecord;
    readonly reportedBytes: bigint;
    readonly budgetMs: number;
    readonly gainedBytes: () => Promise<bigint>;
    readonly timer: Timer;
  },
  signal: AbortSignal,
): Promise<Settling> {
  const { reportedBytes, timer, gainedBytes } = input;
  const enough = async (): Promise<boolean> => (await gainedBytes()) * 2n >= reportedBytes;
  if (await enough()) return { settled: "at-once", waitedMs: 0 };
  if (releaseKind(input.release) === "prompt" || reportedBytes < TELLING_BYTES) {
    return { settled: "not-waited", waitedMs: 0 };
  }
  const startNs = timer.monotonicNs();
  const waitedMs = (): number => Number((timer.monotonicNs() - startNs) / 1_000_000n);
  const longestMs = Math.min(SETTLE_REMOVAL_MS, input.budgetMs);
  for (
    let pauseMs = FIRST_PAUSE_MS;
    waitedMs() < longestMs && !signal.aborted;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    await timer.sleep(Math.min(pauseMs, Math.max(1, longestMs - waitedMs())), signal);
    if (await enough()) return { settled: "afterwards", waitedMs: waitedMs() };
  }
  return { settled: "not-seen", waitedMs: waitedMs() };
}
