/** Settles the removals of one pass, and records what it learned about the runtime and how long it waited. */

import type { ReleaseRecord } from "../../model/ledger.ts";
import type { ImageCandidate } from "../../model/plan.ts";
import {
  learnRelease,
  noRelease,
  releaseKey,
  type SpaceRelease,
  spaceReleaseOf,
  TELLING_BYTES,
} from "../../policy/space/release.ts";
import type { ImageExecution } from "./image-execution.ts";
import type { Meter } from "./meter.ts";
import { settle, SETTLE_PASS_MS, type Settled } from "./settle.ts";

export class Settler {
  /** What is known by now of how the runtime frees space. */
  learned: ReleaseRecord;
  readonly #execution: Pick<ImageExecution, "facts" | "timer">;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;
  /** A removal of this pass showed nothing of its space and was not waited for: it may come while the next one is made. */
  #owes = false;

  constructor(
    execution: Pick<ImageExecution, "facts" | "timer">,
    pass: { readonly meter: Meter; readonly signal: AbortSignal },
  ) {
    const { ledger, snapshot } = execution.facts;
    this.learned = ledger.releases.get(releaseKey(snapshot.runtime)) ?? noRelease;
    this.#execution = execution;
    this.#meter = pass.meter;
    this.#signal = pass.signal;
  }

  release(): SpaceRelease {
    return spaceReleaseOf(this.#execution.facts.snapshot.runtime, this.learned);
  }

  /** Whether space of what this pass removed may be still to come. */
  mayAppear(): boolean {
    const release = this.release();
    return release === "delayed" || (release === "unknown" && this.#owes);
  }

  /** Whether this pass has waited for a delayed runtime as long as it may. */
  isExhausted(): boolean {
    return this.release() === "delayed" && this.#waitedMs >= SETTLE_PASS_MS;
  }

  /** `expectedGainBytes`: what layers let expect of the removal at least; `null`: not known. */
  async settle(
    reportedBytes: bigint,
    expectedGainBytes: bigint | null,
    mayWait: boolean,
  ): Promise<Settled> {
    const { settled, sign, waitedMs } = await settle(
      {
        release: this.release(),
        signsBefore: this.learned.promptRemovals,
        reportedBytes,
        expectedGainBytes,
        mayWait,
        budgetMs: SETTLE_PASS_MS - this.#waitedMs,
        gainedBytes: this.#meter.gained(),
        measure: () => this.#meter.gainedNow(),
        timer: this.#execution.timer,
      },
      this.#signal,
    );
    this.#waitedMs += waitedMs;
    // What is there at once may be the space of an earlier removal.
    const proves = sign !== null && !(sign === "there-at-once" && this.#owes);
    if (proves) this.learned = learnRelease(this.learned, sign);
    if (settled === "not-waited" && this.#meter.gained() < TELLING_BYTES) this.#owes = true;
    return settled;
  }
}

/** The share of the expected bytes that counts as all of them: files take whole blocks, and the runtime's database grows. */
export const expectedGain = ({ frees }: ImageCandidate): bigint | null =>
  frees === undefined ? null : (frees.lowerBytes * 3n) / 4n;
