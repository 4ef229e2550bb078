/** The agent: five loops over one engine, one pass at a time, until it is stopped. */

import { Announcer } from "../gc/announcer.ts";
import { detect } from "../gc/detect.ts";
import { failureOf } from "../gc/pass-failure.ts";
import { type PassRequest, runPass } from "../gc/pass.ts";
import type { Engine, Seen } from "../gc/ports.ts";
import { messageOf, RuntimeError } from "../model/errors.ts";
import type { LoopName, Pass } from "../model/pass.ts";
import { duration, type Instant, instantFromMs, instantToMs } from "../model/time.ts";
import { noPressure, type PressureState, type PressureVerdict } from "../policy/pressure/judge.ts";
import { collectsImages } from "../policy/space/targets.ts";
import {
  type AgentState,
  firstLoopState,
  initialState,
  type LoopState,
  ofEachLoop,
  withoutDecisions,
} from "./agent-state.ts";
import { forgetGone, largestFirst } from "./image-cache.ts";
import { LayerReading } from "./layer-reading.ts";
import { LoopProgress, noting } from "./loop-progress.ts";
import { Measurements } from "./measurements.ts";
import { checkPressure, reclaimTargets } from "./pressure-check.ts";
import { PressurePace } from "./pressure-pace.ts";
import { repeat } from "./schedule.ts";

/** Milliseconds between the end of one run and the start of the next. */
export type Periods = Readonly<Record<LoopName, number>>;

export interface AgentOptions {
  readonly engine: Engine;
  readonly periods: () => Periods;
  readonly dryRun: () => boolean;
  /** How long a pass waits for another process's pass. */
  readonly lockWaitMs: () => number;
  readonly now: () => Instant;
  readonly random: () => number;
}

/** How a run of a loop ended: with this failure, well (`null`), or interrupted by a more urgent pass (`undefined`). */
type Ended = string | null | undefined;

export class Agent {
  readonly #options: AgentOptions;
  /** The last piece of work that no other may run beside. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #layers = new LayerReading();
  readonly #measurements: Measurements;
  readonly #announcer: Announcer;
  readonly #loops: Record<LoopName, ReturnType<typeof firstLoopState>>;
  readonly #progress: Readonly<Record<LoopName, LoopProgress>>;
  /** One per loop, to tell which of them makes progress. */
  readonly #engines: Readonly<Record<LoopName, Engine>>;
  #state: AgentState = initialState;
  #pressure: PressureState = noPressure;
  readonly #pace: PressurePace;
  #reload = new AbortController();
  /** Ends a container pass, and the reading of layers, while pressure is due. */
  #yield = new AbortController();

  constructor(options: AgentOptions) {
    const { observe } = options.engine;
    this.#measurements = new Measurements(options.now);
    const disk = this.#measurements.noting(observe.disk);
    this.#options = { ...options, engine: { ...options.engine, observe: { ...observe, disk } } };
    this.#progress = ofEachLoop(() => new LoopProgress(options.engine.timer));
    this.#engines = ofEachLoop((name) => noting(this.#options.engine, this.#progress[name]));
    this.#announcer = new Announcer(options.engine.journal);
    const periodMs = (): number => options.periods().pressure;
    this.#pace = new PressurePace({ engine: options.engine, periodMs });
    this.#loops = ofEachLoop(firstLoopState);
  }

  state(): AgentState {
    const periods = this.#options.periods();
    const loops = Object.values(this.#loops).map((loop) => ({
      ...loop,
      periodMs: periods[loop.name],
      enabled: this.#enabled(loop.name),
      stalled: this.#progress[loop.name].stalled(),
    }));
    const filesystems = this.#measurements.newest(this.#state.seen);
    return { ...this.#state, loops, filesystems };
  }

  /** After a reload: measures the current pauses by the new periods, and lets a pass under pressure begin. */
  reloaded(): void {
    this.#pace.forget();
    const before = this.#reload;
    this.#reload = new AbortController();
    before.abort();
  }

  /** Runs until `signal` aborts; finishes the removal in flight first. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(ofEachLoop((name) => this.#loop(name, signal))));
  }

  #loop(name: LoopName, signal: AbortSignal): Promise<void> {
    return repeat(
      {
        timer: this.#options.engine.timer,
        periodMs: () => this.#pauseMs(name),
        interruption: () => this.#reload.signal,
        scheduled: (inMs) => {
          this.#progress[name].pauses(inMs);
          this.#change(name, { nextAt: instantFromMs(instantToMs(this.#options.now()) + inMs) });
        },
        run: (stop) => this.#runOnce(name, stop),
      },
      signal,
    );
  }

  #pauseMs(name: LoopName): number {
    const periods = this.#options.periods();
    if (name === "pressure") return this.#pace.pauseMs(this.#state.pressure);
    // Without an observation there are no filesystems to check for pressure.
    const isBlind = name === "image-detection" && this.#state.seen === null;
    return isBlind ? Math.min(periods[name], periods.pressure) : periods[name];
  }

  async #runOnce(name: LoopName, signal: AbortSignal): Promise<void> {
    if (!this.#enabled(name)) return;
    this.#progress[name].works();
    this.#change(name, { lastStartedAt: this.#options.now(), nextAt: null });
    let error: Ended;
    try {
      error = await this.#work(name, signal);
    } catch (thrown) {
      error = messageOf(thrown);
      this.#noteSilence(thrown);
    }
    if (signal.aborted) return;
    const at = this.#options.now();
    if (error === undefined) return this.#change(name, { lastEndedAt: at });
    const { consecutiveFailures: inARow } = this.#loops[name];
    const periodMs = this.#options.periods()[name];
    if (error !== null && !this.#progress[name].isAnotherFailure(inARow, periodMs))
      return this.#change(name, { lastEndedAt: at, lastError: error });
    const failures = error === null ? 0 : inARow + 1;
    this.#announcer.loopEnded(name, { error, failures, at });
    this.#change(name, { lastEndedAt: at, lastError: error, consecutiveFailures: failures });
  }

  async #work(name: LoopName, signal: AbortSignal): Promise<Ended> {
    switch (name) {
      case "image-cache":
        return this.#refreshCache(signal);
      case "image-detection":
        await this.#inTurn(name, async (engine) => this.#noteSeen(await detect(engine, signal)));
        return this.#layers.read(this.#engines[name], signal);
      case "image-gc":
        return this.#pass(
          { kind: "image-gc", purpose: { kind: "periodic" }, containers: "none", images: true },
          signal,
        );
      case "container-gc":
        return this.#pass(
          { kind: "container-gc", purpose: { kind: "periodic" }, containers: "all", images: false },
          signal,
        );
      case "pressure":
        return this.#relievePressure(signal);
      default:
        return name satisfies never;
    }
  }

  /** Runs `work` while no other loop does the same, in the order of requests: the pass lock within this process. */
  #inTurn<T>(name: LoopName, work: (engine: Engine) => Promise<T>): Promise<T> {
    this.#progress[name].waits();
    const turn = this.#last.then(() => {
      this.#progress[name].works();
      return work(this.#engines[name]);
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #refreshCache(signal: AbortSignal): Promise<null> {
    const engine = this.#engines["image-cache"];
    const images = await engine.observe.runtime.listImages(signal);
    this.#state = { ...this.#state, images: largestFirst(images), cachedAt: this.#options.now() };
    this.#noteAnswer();
    forgetGone(engine, images);
    return null;
  }

  async #pass(
    request: Pick<PassRequest, "purpose" | "containers" | "images" | "retarget"> & {
      readonly kind: Exclude<PassRequest["kind"], "gc">;
    },
    signal: AbortSignal,
  ): Promise<Ended> {
    const { lockWaitMs, dryRun, now, random } = this.#options;
    if (request.kind === "pressure") {
      this.#yield.abort();
      this.#yield = new AbortController();
    }
    const waits: PassRequest["waits"] = (waiting) => (this.#state = { ...this.#state, waiting });
    const common = { waits, now, random, announcer: this.#announcer };
    const [startedAt, startNs] = [now(), this.#options.engine.timer.monotonicNs()];
    const ended = await this.#inTurn(request.kind, async (engine) => {
      // If asked to stop during another pass, this one does not begin.
      if (signal.aborted) return null;
      const hurry = this.#yield.signal;
      const turn = { startedAt, took: duration(engine.timer.monotonicNs() - startNs) };
      const rest = { dryRun: dryRun(), lockWaitMs: lockWaitMs(), hurry, turn };
      const stop = request.kind === "container-gc" ? AbortSignal.any([signal, hurry]) : signal;
      const end = await runPass(engine, { ...request, ...common, ...rest }, stop);
      return { ...end, gaveWay: stop.aborted && end.prepared === null };
    });
    if (ended === null) return null;
    this.#notePass(ended.pass);
    if (ended.seen !== null) this.#noteSeen(ended.seen);
    // A pass under pressure interrupted it before it had a plan: neither it nor the runtime failed.
    if (ended.gaveWay) return undefined;
    this.#noteSilence(ended.failure);
    return failureOf(ended.pass);
  }

  /** A check costs one statfs per filesystem; it calls the runtime only once a threshold is due. */
  async #relievePressure(signal: AbortSignal): Promise<Ended> {
    const engine = this.#engines.pressure;
    const check = async (): Promise<PressureVerdict | null> => {
      const filesystems = this.#state.seen?.filesystems ?? [];
      if (filesystems.length === 0) return null;
      const verdict = await checkPressure(engine, { filesystems, state: this.#pressure });
      this.#pressure = verdict.state;
      this.#state = { ...this.#state, pressure: verdict };
      return verdict;
    };
    this.#pace.checks();
    const verdict = await check();
    if (verdict === null) return null;
    this.#announcer.pressure(verdict, this.#options.now(), engine.limits().images.compat);
    const { reclaim } = verdict;
    // A check while the last pass is recent says nothing about it.
    if (!this.#pace.beginsPass(verdict)) return this.#pace.rests() ? undefined : null;
    const signals = [...new Set(verdict.due.map((one) => one.threshold.signal))];
    const failure = await this.#pass(
      {
        kind: "pressure",
        purpose: { kind: "pressure", signals },
        containers: reclaim.containers ? "all" : reclaim.logs ? "logs" : "none",
        images: reclaim.images,
        retarget: async () => reclaimTargets(engine.limits().images.compat, signals, await check()),
      },
      signal,
    );
    const after = await check();
    const pass = this.#state.lastPasses.get("pressure");
    if (pass !== undefined) this.#pace.passed(pass, after?.due ?? []);
    return failure;
  }

  #enabled(name: LoopName): boolean {
    const limits = this.#options.engine.limits();
    if (name === "image-gc") return collectsImages(limits.images);
    return name !== "pressure" || limits.pressure.thresholds.length > 0;
  }

  #noteSeen(seen: Seen): void {
    this.#state = { ...this.#state, seen };
    this.#noteAnswer();
  }

  #noteAnswer(): void {
    this.#state = { ...this.#state, runtimeAnsweredAt: this.#options.now(), runtimeError: null };
  }

  /** A disk that cannot be measured, or a lock that is taken, says nothing about the runtime. */
  #noteSilence(failure: unknown): void {
    if (failure instanceof RuntimeError)
      this.#state = { ...this.#state, runtimeError: failure.message };
  }

  #notePass(pass: Pass): void {
    this.#state = {
      ...this.#state,
      lastPasses: new Map(this.#state.lastPasses).set(pass.kind, withoutDecisions(pass)),
    };
  }

  #change(name: LoopName, change: Partial<LoopState>): void {
    this.#loops[name] = { ...this.#loops[name], ...change };
  }
}
