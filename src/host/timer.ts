// Time that passes, for whoever waits: the real one.

export interface Timer {
  /** Monotonic nanoseconds. */
  monotonicNs(): bigint;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const timer: Timer = {
  monotonicNs: () => BigInt(Bun.nanoseconds()),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        clearTimeout(handle);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const handle = setTimeout(done, ms);
      signal.addEventListener("abort", done);
    }),
};
