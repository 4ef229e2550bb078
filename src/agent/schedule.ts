/** Runs something repeatedly: at once, then each time its period has passed since the last run ended. */

import type { Timer } from "../model/ports.ts";

export interface Repeating {
  /** Read before each pause, so that a reloaded period takes effect with the next one. */
  readonly periodMs: () => number;
  /** Must not reject; it records its own failures. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly timer: Timer;
  /** Receives the time of the next run, in milliseconds from now. */
  readonly scheduled: (inMs: number) => void;
  /** A fresh signal that aborts when the pause should be measured again (after a reload). */
  readonly interruption: () => AbortSignal;
}

/** Ends when `signal` aborts, after the run in flight. */
export async function repeat(repeating: Repeating, signal: AbortSignal): Promise<void> {
  const { timer, run } = repeating;
  while (!signal.aborted) {
    await run(signal);
    await pause(repeating, timer.monotonicNs(), signal);
  }
}

async function pause(repeating: Repeating, endedNs: bigint, signal: AbortSignal): Promise<void> {
  const { timer, periodMs } = repeating;
  const remaining = (): number => periodMs() - Number((timer.monotonicNs() - endedNs) / 1_000_000n);
  for (let leftMs = remaining(); leftMs > 0 && !signal.aborted; leftMs = remaining()) {
    repeating.scheduled(leftMs);
    await timer.sleep(leftMs, AbortSignal.any([signal, repeating.interruption()]));
  }
}
