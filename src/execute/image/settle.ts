/** Waits for space that a runtime frees with a delay, and learns whether an unknown runtime does so. */

import type { ReleaseRecord } from "../../model/ledger.ts";
import type { Settled } from "../../model/outcome.ts";
import type { ImageCandidate } from "../../model/plan.ts";
import type { Timer } from "../../model/ports.ts";
import {
  learnRelease,
  noRelease,
  releaseKey,
  type ReleaseSign,
  type SpaceRelease,
  spaceReleaseOf,
  TELLING_BYTES,
} from "../../policy/space/release.ts";
import type { ImageExecution } from "./image-execution.ts";
import type { Meter } from "./meter.ts";

export const SETTLE_REMOVAL_MS = 5_000;
/** The rest is left to the next pass. */
const SETTLE_PASS_MS = 60_000;
/** A runtime that has shown a sign of being immediate is watched for less time. */
const SECOND_WATCH_MS = 2_000;
/** Delayed space appears all at once: after a significant part, this long without more means that it was all. */
const QUIET_MS = 1_000;
const TELLING_SHARE = 8n;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

/** Settles the removals of one pass, and records what it learned about the runtime and how long it waited. */
export class Settler {
  /** What is known so far about how the runtime frees space. */
  learned: ReleaseRecord;
  readonly #execution: Pick<ImageExecution, "facts" | "timer" | "waiting">;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;
  /** A removal of this pass freed nothing visible and was not waited for: its space may appear during the next removal. */
  #owes = false;

  constructor(
    execution: Pick<ImageExecution, "facts" | "timer" | "waiting">,
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
    const input = {
      release: this.release(),
      signsBefore: this.learned.promptRemovals,
      reportedBytes,
      expectedGainBytes,
      mayWait,
      budgetMs: SETTLE_PASS_MS - this.#waitedMs,
      gainedBytes: this.#meter.gained(),
      measure: () => this.#meter.gainedNow(),
      timer: this.#execution.timer,
    };
    const { settled, sign, waitedMs } = await this.#execution.waiting("space", () =>
      settle(input, this.#signal),
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

export interface Settling {
  readonly settled: Settled;
  /** What the removal shows about the runtime; `null`: nothing. */
  readonly sign: ReleaseSign | null;
  readonly waitedMs: number;
}

export interface SettleInput {
  readonly release: SpaceRelease;
  /** Earlier signs that the runtime is immediate. */
  readonly signsBefore: number;
  readonly reportedBytes: bigint;
  /** What the removal frees at least, by the image's layers; `null`: unknown, and half the reported size is enough. */
  readonly expectedGainBytes: bigint | null;
  /** Whether the pass still needs space; passes for age, count or everything unused never wait. */
  readonly mayWait: boolean;
  readonly budgetMs: number;
  /** The gain when the call returned, compared with before it. */
  readonly gainedBytes: bigint;
  /** Measures the same again; rejects on errors. */
  readonly measure: () => Promise<bigint>;
  readonly timer: Timer;
}

/** Waits only if the runtime is not known to be immediate: up to 5 s, never beyond `budgetMs`. */
export async function settle(input: SettleInput, signal: AbortSignal): Promise<Settling> {
  const { release, reportedBytes, gainedBytes: gained } = input;
  const expected = input.expectedGainBytes ?? reportedBytes / 2n;
  if (expected < TELLING_BYTES) return { settled: "not-waited", sign: null, waitedMs: 0 };
  if (gained >= expected) return { settled: "at-once", sign: "there-at-once", waitedMs: 0 };
  if (release === "immediate" || !input.mayWait)
    return { settled: "not-waited", sign: null, waitedMs: 0 };
  const { risen, isWhole, waitedMs } = await watch(input, expected, signal);
  if (risen >= TELLING_BYTES) return { settled: "afterwards", sign: "more-followed", waitedMs };
  // A watch that was cut short has shown nothing.
  const sign = gained >= TELLING_BYTES ? "none-followed" : "nothing-seen";
  return {
    settled: release === "delayed" ? "not-seen" : "at-once",
    sign: isWhole ? sign : null,
    waitedMs,
  };
}

interface Watched {
  /** How far free space rose above its lowest since the call returned; others may write meanwhile. */
  readonly risen: bigint;
  readonly isWhole: boolean;
  readonly waitedMs: number;
}

async function watch(input: SettleInput, expected: bigint, signal: AbortSignal): Promise<Watched> {
  const { timer, measure, release, signsBefore, budgetMs } = input;
  const startNs = timer.monotonicNs();
  const waited = (): number => Number((timer.monotonicNs() - startNs) / 1_000_000n);
  const wholeMs = release === "unknown" && signsBefore > 0 ? SECOND_WATCH_MS : SETTLE_REMOVAL_MS;
  const longestMs = Math.min(wholeMs, budgetMs);
  const share = expected / TELLING_SHARE;
  const telling = share > TELLING_BYTES ? share : TELLING_BYTES;
  let lowest = input.gainedBytes;
  let risen = 0n;
  let roseMs = Infinity;
  for (
    let pauseMs = FIRST_PAUSE_MS;
    waited() < longestMs && !signal.aborted;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    await timer.sleep(Math.min(pauseMs, Math.max(1, longestMs - waited())), signal);
    const gained = await measure();
    if (gained < lowest) lowest = gained;
    if (gained - lowest > risen) {
      risen = gained - lowest;
      if (risen >= telling) roseMs = waited();
    }
    const isEnough = risen >= telling && (gained >= expected || risen >= expected);
    if (isEnough || waited() - roseMs >= QUIET_MS) break;
  }
  return { risen, isWhole: !signal.aborted && longestMs === wholeMs, waitedMs: waited() };
}
