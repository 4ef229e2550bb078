/** Times the steps of a pass, as spans for the log and the history. */

import { messageOf } from "../../model/errors.ts";
import type { Step } from "../../model/pass.ts";
import { duration, type Instant } from "../../model/time.ts";
import type { ReadEngine } from "../ports.ts";

export class Steps {
  readonly #engine: Pick<ReadEngine, "timer" | "stepDone">;
  readonly #now: () => Instant;
  readonly #steps: Step[] = [];

  constructor(engine: Pick<ReadEngine, "timer" | "stepDone">, now: () => Instant) {
    this.#engine = engine;
    this.#now = now;
  }

  /** Runs one step and records its duration and whether it failed; failures pass through. */
  async run<T>(name: Step["name"], work: () => Promise<T> | T): Promise<T> {
    const { timer, stepDone } = this.#engine;
    const startedAt = this.#now();
    const startNs = timer.monotonicNs();
    const note = (error: string | null): void => {
      this.#steps.push({
        name,
        startedAt,
        took: duration(timer.monotonicNs() - startNs),
        error,
      });
    };
    try {
      const result = await work();
      stepDone?.();
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
