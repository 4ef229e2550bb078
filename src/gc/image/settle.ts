/** Waits for space that appears only after its removal was answered. */

import type { ImageTarget } from "../../model/plan.ts";
import { TELLING_BYTES } from "../../policy/space/nothing-freed.ts";
import { lackedBytes, type Progress, targetsMet } from "../../policy/space/progress.ts";
import type { ImageExecution } from "./image-execution.ts";
import type { Meter } from "./meter.ts";

/** The rest is left to the next pass. */
const WAIT_PASS_MS = 60_000;
/** Each of these has to bring something, or the wait ends. */
const STEP_MS = 500;
const POLL_MS = 100;

/** The waits of one pass. */
export class Settler {
  readonly #execution: Pick<ImageExecution, "commit" | "timer" | "waiting">;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;
  #expectedBytes = 0n;
  /** What each target lacked when the estimates began to count. */
  #lacked: ReadonlyMap<ImageTarget, bigint | null> = new Map();
  /** A wait showed that nothing comes late. */
  #isPrompt = false;
  /** Whether the time of the pass ran out while space still appeared. */
  isExhausted = false;

  constructor(
    execution: Pick<ImageExecution, "commit" | "timer" | "waiting">,
    pass: { readonly meter: Meter; readonly signal: AbortSignal },
  ) {
    this.#execution = execution;
    this.#meter = pass.meter;
    this.#signal = pass.signal;
  }

  /** Counts the estimates from here: what was removed before shows in the measurement. */
  begin(targets: readonly ImageTarget[], progress: Progress): void {
    this.#expectedBytes = 0n;
    this.#lacked = new Map(targets.map((target) => [target, lackedBytes(target, progress)]));
  }

  removed(estimatedBytes: bigint): void {
    this.#expectedBytes += estimatedBytes;
  }

  /** Whether by the estimates enough was removed for every target, while the disks say otherwise. */
  isDue(targets: readonly ImageTarget[], progress: Progress): boolean {
    if (this.#isPrompt) return false;
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    return (
      open.length > 0 &&
      open.every((target) => {
        const lacked = this.#lacked.get(target) ?? null;
        return lacked !== null && this.#expectedBytes >= lacked;
      })
    );
  }

  /** Waits while space appears and it is not enough. */
  async wait(isEnough: () => boolean): Promise<void> {
    const startNs = this.#execution.timer.monotonicNs();
    if (this.#waitedMs >= WAIT_PASS_MS) return;
    await this.#execution.waiting("space", () => this.#untilStill(isEnough));
    this.#waitedMs += this.#sinceMs(startNs);
  }

  async #untilStill(isEnough: () => boolean): Promise<void> {
    const { timer, commit } = this.#execution;
    const endNs = timer.monotonicNs() + BigInt(WAIT_PASS_MS - this.#waitedMs) * 1_000_000n;
    const first = this.#meter.available();
    const committed = this.#meter.committed();
    for (const path of committed) await commit(path);
    await this.#meter.gainedNow();
    while (!isEnough()) {
      const before = this.#meter.available();
      const stepNs = timer.monotonicNs();
      while (this.#sinceMs(stepNs) < STEP_MS) {
        if (this.#signal.aborted) return;
        await timer.sleep(POLL_MS, this.#signal);
        await this.#meter.gainedNow();
        if (isEnough() || this.#roseSince(before) <= -TELLING_BYTES) return;
      }
      if (this.#roseSince(before) < TELLING_BYTES) {
        this.#isPrompt = committed.length === 0 && this.#roseSince(first) < TELLING_BYTES;
        return;
      }
      this.isExhausted = timer.monotonicNs() >= endNs;
      if (this.isExhausted) return;
    }
  }

  /** On the filesystem where most appeared. */
  #roseSince(before: ReadonlyMap<string, bigint>): bigint {
    return [...this.#meter.risesSince(before).values()].reduce((most, one) =>
      one > most ? one : most,
    );
  }

  #sinceMs(ns: bigint): number {
    return Number((this.#execution.timer.monotonicNs() - ns) / 1_000_000n);
  }
}
