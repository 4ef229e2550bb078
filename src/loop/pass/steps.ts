/** Times the steps of a pass, as spans that the log and the history carry. */

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

  /** Runs one step and notes how long it took and whether it failed; the failure goes on to the caller. */
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
