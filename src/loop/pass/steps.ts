/** Times the steps of a pass, as spans for the log and the history. */

import { messageOf } from "../../model/errors.ts";
import type { Step } from "../../model/pass.ts";
import type { Timer } from "../../model/ports.ts";
import { duration, type Instant } from "../../model/time.ts";

export class Steps {
  readonly #timer: Timer;
  readonly #now: () => Instant;
  readonly #steps: Step[] = [];

  constructor(timer: Timer, now: () => Instant) {
    this.#timer = timer;
    this.#now = now;
  }

  /** Runs one step and records its duration and whether it failed; failures pass through. */
  async run<T>(name: Step["name"], work: () => Promise<T> | T): Promise<T> {
    const startedAt = this.#now();
    const startNs = this.#timer.monotonicNs();
    const note = (error: string | null): void => {
      this.#steps.push({
        name,
        startedAt,
        took: duration(this.#timer.monotonicNs() - startNs),
        error,
      });
    };
    try {
      const result = await work();
      note(null);
      return result;
    } catch (thrown) {
      note(messageOf(thrown));
      throw thrown;
    }
  }

  list(): readonly Step[] {
    return this.#steps;
  }
}
