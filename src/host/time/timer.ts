// Real time, for whatever waits.

import type { Timer } from "../../model/ports.ts";

/** The maximum of `setTimeout`, some 25 days; it fires a longer one after a millisecond. */
const LONGEST_MS = 2 ** 31 - 1;

export const timer: Timer = {
  monotonicNs: () => BigInt(Bun.nanoseconds()),
  sleep: async (ms, signal) => {
    let leftMs = ms;
    for (; leftMs > LONGEST_MS && !signal.aborted; leftMs -= LONGEST_MS)
      await slept(LONGEST_MS, signal);
    await slept(leftMs, signal);
  },
};

const slept = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(handle);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const handle = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
