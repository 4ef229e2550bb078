// Time that passes only when nothing else is left to do: sleepers are woken one by one, in order of their time.

import type { Timer } from "../../src/model/ports.ts";

interface Sleeper {
  readonly atNs: bigint;
  readonly order: number;
  readonly wake: () => void;
}

export class SimClock implements Timer {
  #nowNs = 1_000_000_000n;
  #order = 0;
  /** A heap: the next one to wake comes first. */
  readonly #sleepers: Sleeper[] = [];

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
    this.#push({ atNs, order: (this.#order += 1), wake });
  }

  /** Lets time pass; whatever runs meanwhile runs to its next wait before the clock moves on. */
  async run(ms: number): Promise<void> {
    const endNs = this.#nowNs + BigInt(Math.round(ms * 1e6));
    for (;;) {
      await quiet();
      const next = this.#sleepers[0];
      if (next === undefined || next.atNs > endNs) break;
      this.#pop();
      this.#nowNs = next.atNs;
      next.wake();
    }
    this.#nowNs = endNs;
  }

  #push(sleeper: Sleeper): void {
    const heap = this.#sleepers;
    let at = heap.push(sleeper) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(sleeper, heap[parent] as Sleeper)) break;
      heap[at] = heap[parent] as Sleeper;
      at = parent;
    }
    heap[at] = sleeper;
  }

  #pop(): void {
    const heap = this.#sleepers;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Sleeper)) child += 1;
      if (!isBefore(heap[child] as Sleeper, last)) break;
      heap[at] = heap[child] as Sleeper;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (one: Sleeper, other: Sleeper): boolean =>
  one.atNs === other.atNs ? one.order < other.order : one.atNs < other.atNs;

/** Until every promise that can be kept has been: the timers phase comes after all of them. */
const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
