/** One loop of the agent: when it runs, how its last run ended, and since when nothing of it has ended, the basis of health. */

import { journalOf } from "../engine/journal.ts";
import type { LoopEnd } from "../gc/announcer.ts";
import type { Engine } from "../gc/ports.ts";
import { messageOf } from "../model/errors.ts";
import type { LoopName, LoopStatus } from "../model/pass.ts";
import { type Instant, instantFromMs, instantToMs } from "../model/time.ts";

export interface LoopState extends LoopStatus {
  /** Since a run, or a removal in it, last ended; `null` while it waits for another loop's pass. */
  readonly silentMs: number | null;
}

/** How a run ended: with this failure, well (`null`), or interrupted by a more urgent pass (`undefined`). */
export type RunResult = string | null | undefined;

export interface LoopOptions {
  readonly name: LoopName;
  readonly engine: Engine;
  /** Configured, between the end of one run and the start of the next. */
  readonly periodMs: number;
  /** Until the next run. */
  readonly pauseMs: () => number;
  readonly isEnabled: boolean;
  readonly run: (signal: AbortSignal) => Promise<RunResult>;
  readonly failed: (thrown: unknown) => void;
  /** Called when a run has succeeded, or failed as one more in a row. */
  readonly ended: (end: LoopEnd) => void;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const NS_PER_MS = 1_000_000n;

export class Loop {
  readonly #options: LoopOptions;
  /** Its removals count as signs of life of this loop only. */
  readonly engine: Engine;
  readonly #status: Mutable<Omit<LoopStatus, "name" | "periodMs" | "enabled" | "nextAt">> = {
    lastStartedAt: null,
    lastEndedAt: null,
    lastError: null,
    consecutiveFailures: 0,
  };
  #phase: "pausing" | "waiting" | "working" = "pausing";
  /** By the monotonic clock, like the next: when a run or a removal last ended, or its turn came. */
  #aliveNs: bigint;
  #nextNs: bigint;
  /** When the last failure that counts ended. */
  #failedNs = 0n;

  constructor(options: LoopOptions) {
    this.#options = options;
    const { journal, timer } = options.engine;
    this.#aliveNs = timer.monotonicNs();
    this.#nextNs = this.#aliveNs;
    this.engine = {
      ...options.engine,
      journal: journalOf(journal, {
        imageDone: () => this.#alive(),
        containerDone: () => this.#alive(),
      }),
    };
  }

  state(): LoopState {
    const { name, periodMs, isEnabled } = this.#options;
    const status = { name, periodMs, enabled: isEnabled, ...this.#status };
    return { ...status, nextAt: this.#nextAt(), silentMs: this.#silentMs() };
  }

  /** Runs at once, then each time the pause has passed since the last run ended; ends after the run in flight. */
  async repeat(signal: AbortSignal): Promise<void> {
    while (this.#options.isEnabled && !signal.aborted) {
      await this.#run(signal);
      await this.#pause(signal);
    }
  }

  /** It waits for its turn, whose loop shows whether it is alive. */
  queued(): void {
    this.#phase = "waiting";
  }

  /** Its turn has come. */
  resumed(): void {
    this.#phase = "working";
    this.#alive();
  }

  #alive(): void {
    this.#aliveNs = this.#options.engine.timer.monotonicNs();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { run, failed, ended } = this.#options;
    this.#phase = "working";
    const status = this.#status;
    status.lastStartedAt = this.#now();
    const error = await run(signal).catch((thrown: unknown) => {
      failed(thrown);
      return messageOf(thrown);
    });
    this.#alive();
    if (signal.aborted) return;
    const at = this.#now();
    status.lastEndedAt = at;
    if (error === undefined) return;
    status.lastError = error;
    if (error !== null && !this.#isAnotherFailure()) return;
    status.consecutiveFailures = error === null ? 0 : status.consecutiveFailures + 1;
    ended({ error, failures: status.consecutiveFailures, at });
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { engine, pauseMs } = this.#options;
    const ms = pauseMs();
    this.#phase = "pausing";
    this.#nextNs = engine.timer.monotonicNs() + BigInt(Math.ceil(ms)) * NS_PER_MS;
    await engine.timer.sleep(ms, signal);
  }

  /** Whether a failure counts as one more in a row: one in each period, however often the loop runs. */
  #isAnotherFailure(): boolean {
    const { engine, periodMs } = this.#options;
    const nowNs = engine.timer.monotonicNs();
    const periodNs = BigInt(Math.ceil(periodMs)) * NS_PER_MS;
    const isAnother = this.#status.consecutiveFailures === 0 || nowNs - this.#failedNs >= periodNs;
    if (isAnother) this.#failedNs = nowNs;
    return isAnother;
  }

  /** By the wall clock as it is now: it may have jumped since the pause began. */
  #nextAt(): Instant | null {
    if (this.#phase !== "pausing" || this.#status.lastStartedAt === null) return null;
    return instantFromMs(instantToMs(this.#now()) - this.#msSince(this.#nextNs));
  }

  #silentMs(): number | null {
    return this.#phase === "waiting" ? null : this.#msSince(this.#aliveNs);
  }

  #msSince(ns: bigint): number {
    return Number((this.#options.engine.timer.monotonicNs() - ns) / NS_PER_MS);
  }

  #now(): Instant {
    return this.#options.engine.observe.host.clocks().wall;
  }
}
