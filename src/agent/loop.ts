/** One loop of the agent: when it runs, how its last run ended, and whether it makes progress, the basis of health. */

import type { LoopEnd } from "../gc/announcer.ts";
import type { Engine } from "../gc/ports.ts";
import { messageOf, wasUnanswered } from "../model/errors.ts";
import type { LoopName, LoopStatus } from "../model/pass.ts";
import { type Instant, instantFromMs, instantToMs } from "../model/time.ts";

/** A loop that makes no progress when it should. */
export interface Stalled {
  /** `working`: it runs without progress. `overdue`: its next run is late. */
  readonly kind: "working" | "overdue";
  readonly forMs: number;
}

export interface LoopState extends LoopStatus {
  /** `null`: it pauses as scheduled, waits for another loop's pass, or has just made progress. */
  readonly stalled: Stalled | null;
}

/** How a run ended: with this failure, well (`null`), or interrupted by a more urgent pass (`undefined`). */
export type RunResult = string | null | undefined;

export interface LoopOptions {
  readonly name: LoopName;
  readonly engine: Engine;
  /** Configured, between the end of one run and the start of the next. */
  readonly periodMs: () => number;
  /** Until the next run; read again after a reload. */
  readonly pauseMs: () => number;
  readonly isEnabled: () => boolean;
  readonly run: (signal: AbortSignal) => Promise<RunResult>;
  readonly failed: (thrown: unknown) => void;
  /** Called when a run has succeeded, or failed as one more in a row. */
  readonly ended: (end: LoopEnd) => void;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const NS_PER_MS = 1_000_000n;

export class Loop {
  readonly #options: LoopOptions;
  /** What this loop calls: every answer, and every intended wait, counts as progress of this loop only. */
  readonly engine: Engine;
  readonly #status: Mutable<Omit<LoopStatus, "name" | "periodMs" | "enabled" | "nextAt">> = {
    lastStartedAt: null,
    lastEndedAt: null,
    lastError: null,
    consecutiveFailures: 0,
  };
  /**
   * By the monotonic clock, which changes of the wall clock do not affect: by `ns` the loop has to continue in some way.
   * Waiting for another loop's pass has no such time: that loop has one.
   */
  #progress: { readonly kind: "pausing" | "waiting" | "working"; readonly ns: bigint };
  /** When the last failure that counts ended. */
  #failedNs = 0n;
  #reload = new AbortController();

  constructor(options: LoopOptions) {
    this.#options = options;
    this.engine = recordingProgress(options.engine, (mayTakeMs) => this.#called(mayTakeMs));
    this.#progress = { kind: "pausing", ns: this.#nsIn(0) };
  }

  state(): LoopState {
    const { name, periodMs, isEnabled } = this.#options;
    const status = { name, periodMs: periodMs(), enabled: isEnabled(), ...this.#status };
    return { ...status, nextAt: this.#nextAt(), stalled: this.#stalled() };
  }

  /** Runs at once, then each time the pause has passed since the last run ended; ends after the run in flight. */
  async repeat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#run(signal);
      await this.#pause(signal);
    }
  }

  /** Measures the current pause again, by the new periods. */
  reloaded(): void {
    const before = this.#reload;
    this.#reload = new AbortController();
    before.abort();
  }

  /** It runs, and does not only wait for its turn. */
  isWorking(): boolean {
    return this.#progress.kind === "working";
  }

  /** It waits for its turn. */
  queued(): void {
    this.#progress = { kind: "waiting", ns: this.#nsIn(0) };
  }

  /** Starts to work, or makes progress; `mayTakeMs` if something expected to take long is in progress. */
  progressed(mayTakeMs = 0): void {
    const ns = this.#nsIn(mayTakeMs);
    const { kind, ns: before } = this.#progress;
    this.#progress = { kind: "working", ns: kind === "working" && before > ns ? before : ns };
  }

  /** A call that a run gave up may be answered in the pause after it, which goes on as scheduled. */
  #called(mayTakeMs?: number): void {
    if (this.#progress.kind === "working") this.progressed(mayTakeMs);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { isEnabled, run, failed, ended } = this.#options;
    if (!isEnabled()) return;
    this.progressed();
    const status = this.#status;
    status.lastStartedAt = this.#now();
    const error = await run(signal).catch((thrown: unknown) => {
      failed(thrown);
      return messageOf(thrown);
    });
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
    const endedNs = engine.timer.monotonicNs();
    let reload = this.#reload;
    let wholeMs = pauseMs();
    while (!signal.aborted) {
      if (reload.signal.aborted) [reload, wholeMs] = [this.#reload, pauseMs()];
      const ms = wholeMs - Number((engine.timer.monotonicNs() - endedNs) / NS_PER_MS);
      if (ms <= 0) return;
      this.#progress = { kind: "pausing", ns: this.#nsIn(ms) };
      await engine.timer.sleep(ms, AbortSignal.any([signal, reload.signal]));
    }
  }

  /** Whether a failure counts as one more in a row: one in each period, however often the loop runs. */
  #isAnotherFailure(): boolean {
    const { engine, periodMs } = this.#options;
    const nowNs = engine.timer.monotonicNs();
    const periodNs = BigInt(Math.ceil(periodMs())) * NS_PER_MS;
    const isAnother = this.#status.consecutiveFailures === 0 || nowNs - this.#failedNs >= periodNs;
    if (isAnother) this.#failedNs = nowNs;
    return isAnother;
  }

  /** By the wall clock as it is now: it may have jumped since the pause began. */
  #nextAt(): Instant | null {
    const { kind, ns } = this.#progress;
    if (kind !== "pausing" || this.#status.lastStartedAt === null) return null;
    const ms = Number((ns - this.#nsIn(0)) / NS_PER_MS);
    return instantFromMs(instantToMs(this.#now()) + ms);
  }

  #stalled(): Stalled | null {
    const { kind, ns } = this.#progress;
    const forMs = Number((this.#nsIn(0) - ns) / NS_PER_MS);
    if (kind === "waiting" || forMs <= 0) return null;
    return { kind: kind === "working" ? "working" : "overdue", forMs };
  }

  #now(): Instant {
    return this.#options.engine.observe.host.clocks().wall;
  }

  #nsIn(ms: number): bigint {
    return this.#options.engine.timer.monotonicNs() + BigInt(Math.ceil(ms)) * NS_PER_MS;
  }
}

/**
 * `progressed` is called after every answer, and before every wait, with its length. A refusal is an answer too; a missing
 * answer is not.
 */
function recordingProgress(engine: Engine, progressed: (mayTakeMs?: number) => void): Engine {
  const recording = <T extends object>(port: T): T =>
    new Proxy(port, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: readonly unknown[]): Promise<unknown> => {
          try {
            const answer: unknown = await Reflect.apply(method, target, args);
            progressed();
            return answer;
          } catch (thrown) {
            if (!wasUnanswered(thrown)) progressed();
            throw thrown;
          }
        };
      },
    });
  const { observe, timer } = engine;
  const writer = recording(engine.writer);
  return {
    ...engine,
    observe: { ...observe, runtime: recording(observe.runtime), disk: recording(observe.disk) },
    writer: {
      ...writer,
      stopContainer: (id, graceSeconds, signal) => {
        progressed(graceSeconds * 1000);
        return writer.stopContainer(id, graceSeconds, signal);
      },
      execSync: (id, command, signal) => {
        progressed(command.timeoutSeconds * 1000);
        return writer.execSync(id, command, signal);
      },
    },
    remover: recording(engine.remover),
    timer: {
      monotonicNs: () => timer.monotonicNs(),
      sleep: (ms, signal) => {
        progressed(ms);
        return timer.sleep(ms, signal);
      },
    },
  };
}
