/** Containers and sandboxes that timed out: skipped for a while, longer each time. */

import type { Timer } from "../model/ports.ts";

/** Longer than a pass that waits for deadlines of two minutes. */
const FIRST_MS = 5 * 60_000;
const LONGEST_MS = 60 * 60_000;

interface Silence {
  readonly untilNs: bigint;
  readonly waitMs: number;
}

/** Lasts as long as the process; a process that runs one pass needs none. */
export class Backoff {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #silent = new Map<string, Silence>();

  constructor(timer: Pick<Timer, "monotonicNs">) {
    this.#timer = timer;
  }

  /** How long the ID is still skipped, in milliseconds; 0 if it is not. */
  leftMs(id: string): number {
    const silence = this.#silent.get(id);
    if (silence === undefined) return 0;
    return Math.max(0, Number((silence.untilNs - this.#timer.monotonicNs()) / 1_000_000n));
  }

  unanswered(id: string): void {
    const before = this.#silent.get(id)?.waitMs ?? FIRST_MS / 2;
    const waitMs = Math.min(before * 2, LONGEST_MS);
    const untilNs = this.#timer.monotonicNs() + BigInt(waitMs) * 1_000_000n;
    this.#silent.set(id, { untilNs, waitMs });
  }

  answered(id: string): void {
    this.#silent.delete(id);
  }

  /** Drops IDs that are no longer listed. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.#silent.keys()) if (!ids.has(id)) this.#silent.delete(id);
  }
}
