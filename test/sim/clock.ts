// Time that passes only when nothing else is left to do: sleepers are woken one by one, in order of their time.

import type { Timer } from "../../src/model/ports.ts";
import { toMs } from "../../src/model/time.ts";
import { defaultConfig } from "../support/build/values.ts";

/** Of a call. */
export const DEADLINE_MS = toMs(defaultConfig.values.runtimeRequestTimeout);

export class SimClock implements Timer {
  #nowNs = 1_000_000_000n;
  /** In the order of their time; the next one to wake comes last. */
  readonly #sleepers: { readonly atNs: bigint; readonly wake: () => void }[] = [];

  monotonicNs(): bigint {
    return this.#nowNs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const done = (): void => {
        // A life has one signal and a million sleeps: what listens to it for good is never given back.
        signal?.removeEventListener("abort", done);
        resolve();
      };
      this.after(ms, done);
      signal?.addEventListener("abort", done);
    });
  }

  after(ms: number, wake: () => void): void {
    const atNs = this.#nowNs + BigInt(Math.max(0, Math.round(ms * 1e6)));
    // Before those of the same time, which were there first and wake first.
    const place = this.#sleepers.findLastIndex((other) => other.atNs > atNs) + 1;
    this.#sleepers.splice(place, 0, { atNs, wake });
  }

  /** Lets time pass; whatever runs meanwhile runs to its next wait before the clock moves on. */
  async run(ms: number): Promise<void> {
    const endNs = this.#nowNs + BigInt(Math.round(ms * 1e6));
    for (;;) {
      await quiet();
      const next = this.#sleepers.at(-1);
      if (next === undefined || next.atNs > endNs) break;
      this.#sleepers.pop();
      this.#nowNs = next.atNs;
      next.wake();
    }
    this.#nowNs = endNs;
  }
}

/** Until every promise that can be kept has been: the timers phase comes after all of them. */
const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
