/** The name of a pass and its timed steps, as spans for the log and the history. */

import { messageOf } from "../model/errors.ts";
import { type PassId, passId } from "../model/ids.ts";
import type { Step, WaitName } from "../model/pass.ts";
import type { HostReader } from "../model/ports.ts";
import { duration, durationFromMs, type Instant, toRfc3339 } from "../model/time.ts";
import type { ReadEngine } from "./ports.ts";

/** Shorter waits are not recorded. */
const TELLING_WAIT = durationFromMs(1);

type StepEngine = Pick<ReadEngine, "timer" | "stepDone"> & {
  readonly observe: { readonly host: Pick<HostReader, "clocks"> };
};

export class Steps {
  readonly #engine: StepEngine;
  readonly #steps: Step[] = [];
  readonly #waits = new Map<WaitName, Step>();

  constructor(engine: StepEngine) {
    this.#engine = engine;
  }

  now(): Instant {
    return this.#engine.observe.host.clocks().wall;
  }

  /** Runs one step and records its duration and whether it failed; failures pass through. */
  async run<T>(name: Step["name"], work: () => Promise<T> | T): Promise<T> {
    const { startedAt, took } = this.#begin();
    const note = (error: string | null) =>
      this.#steps.push({ name, startedAt, took: took(), error });
    try {
      const result = await work();
      this.#engine.stepDone?.();
      note(null);
      return result;
    } catch (thrown) {
      note(messageOf(thrown));
      throw thrown;
    }
  }

  /** Times a wait within a step; those of one name add up. */
  async wait<T>(name: WaitName, work: () => Promise<T>): Promise<T> {
    const { startedAt, took } = this.#begin();
    try {
      return await work();
    } finally {
      this.waited(name, { startedAt, took: took() });
    }
  }

  #begin() {
    const { timer } = this.#engine;
    const startNs = timer.monotonicNs();
    return { startedAt: this.now(), took: () => duration(timer.monotonicNs() - startNs) };
  }

  waited(name: WaitName, { startedAt, took }: Pick<Step, "startedAt" | "took">): void {
    const before = this.#waits.get(name) ?? { name, startedAt, took: duration(0n), error: null };
    this.#waits.set(name, { ...before, took: duration(before.took + took) });
  }

  list(): readonly Step[] {
    const waits = [...this.#waits.values()].filter(({ took }) => took >= TELLING_WAIT);
    return [...this.#steps, ...waits];
  }
}

/** `20260101T000000Z-1a2b3c`, sortable by time. */
export function makePassId(now: Instant): PassId {
  const stamp = toRfc3339(now).slice(0, 19).replaceAll(/[-:]/g, "");
  const random = Math.floor(Math.random() * 2 ** 24);
  return passId(`${stamp}Z-${random.toString(16).padStart(6, "0")}`);
}
