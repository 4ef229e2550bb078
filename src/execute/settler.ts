/** Settles the removals of one pass: what is learned of the runtime on the way, and how long the pass has waited. */

import type { ReleaseRecord } from "../model/ledger.ts";
import { learnRelease, type SpaceRelease, spaceReleaseOf } from "../policy/release.ts";
import type { ImageExecution } from "./image-execution.ts";
import type { Meter } from "./meter.ts";
import { settle, SETTLE_PASS_MS, type Settled } from "./settle.ts";

export class Settler {
  /** What is known by now of how the runtime frees space. */
  learned: ReleaseRecord;
  readonly #execution: Pick<ImageExecution, "runtimeInfo" | "timer">;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;

  constructor(
    execution: Pick<ImageExecution, "runtimeInfo" | "release" | "timer">,
    pass: { readonly meter: Meter; readonly signal: AbortSignal },
  ) {
    this.learned = execution.release;
    this.#execution = execution;
    this.#meter = pass.meter;
    this.#signal = pass.signal;
  }

  release(): SpaceRelease {
    return spaceReleaseOf(this.#execution.runtimeInfo, this.learned);
  }

  /** Whether this pass has waited for a delayed runtime as long as it may. */
  isExhausted(): boolean {
    return this.release() === "delayed" && this.#waitedMs >= SETTLE_PASS_MS;
  }

  async settle(reportedBytes: bigint, mayWait: boolean): Promise<Settled> {
    const { settled, sign, waitedMs } = await settle(
      {
        release: this.release(),
        signsBefore: this.learned.promptRemovals,
        reportedBytes,
        // Nothing here knows the layers of an image yet.
        expectedGainBytes: null,
        mayWait,
        budgetMs: SETTLE_PASS_MS - this.#waitedMs,
        gainedBytes: () => this.#meter.gainedNow(),
        timer: this.#execution.timer,
      },
      this.#signal,
    );
    this.#waitedMs += waitedMs;
    if (sign !== null) this.learned = learnRelease(this.learned, sign);
    return settled;
  }
}
