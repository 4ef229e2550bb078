// Real time, for whatever waits.

import type { Timer } from "../../model/ports.ts";
import { TIMER_MS_MAX } from "../../model/time.ts";

export const timer: Timer = {
  monotonicNs: () => BigInt(Bun.nanoseconds()),
  sleep: async (ms, signal) => {
    let leftMs = ms;
    for (; leftMs > TIMER_MS_MAX && !signal.aborted; leftMs -= TIMER_MS_MAX)
      await slept(TIMER_MS_MAX, signal);
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
