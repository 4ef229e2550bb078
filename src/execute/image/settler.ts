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
  /** What is known so far about how the runtime frees space. */
  learned: ReleaseRecord;
  readonly #execution: Pick<ImageExecution, "facts" | "timer">;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;
  /** A removal of this pass freed nothing visible and was not waited for: its space may appear during the next removal. */
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

  /** Whether space of this pass's removals may still appear. */
  mayAppear(): boolean {
    const release = this.release();
    return release === "delayed" || (release === "unknown" && this.#owes);
  }

  /** Whether this pass has used up its time to wait for a delayed runtime. */
  isExhausted(): boolean {
    return this.release() === "delayed" && this.#waitedMs >= SETTLE_PASS_MS;
  }

  /** `expectedGainBytes`: what the removal frees at least, by layers; `null`: unknown. */
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
    // Space that is there at once may belong to an earlier removal.
    const proves = sign !== null && !(sign === "there-at-once" && this.#owes);
    if (proves) this.learned = learnRelease(this.learned, sign);
    if (settled === "not-waited" && this.#meter.gained() < TELLING_BYTES) this.#owes = true;
    return settled;
  }
}

/** This share of the expected bytes counts as all of them: files take whole blocks, and the runtime's database grows. */
export const expectedGain = ({ frees }: ImageCandidate): bigint | null =>
  frees === undefined ? null : (frees.lowerBytes * 3n) / 4n;
