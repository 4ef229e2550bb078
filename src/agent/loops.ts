/** The agent: five loops over one engine, one pass at a time, until it is stopped. */

import type { Config } from "../config/config.ts";
import type { Turn } from "../engine/owner.ts";
import { failureOf, isCutOff } from "../gc/pass-warnings.ts";
import { type PassRequest, runPass } from "../gc/pass.ts";
import type { Engine } from "../gc/ports.ts";
import { detect, learnLayers, seeListed } from "../gc/prepare.ts";
import { HostError, messageOf, RuntimeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { EventReason, LoopName, LoopStatus, Pass } from "../model/pass.ts";
import type { PodSourceState } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { MeasuredFilesystem, Seen } from "../model/reports.ts";
import { type Instant, instantFromMs, instantToMs } from "../model/time.ts";
import type { LockWait } from "../node/lock.ts";
import { noPressure, type PressureVerdict } from "../policy/pressure/thresholds.ts";
import { collectsImages } from "../policy/space.ts";
import { type PassStatus, passStatus, pressureWords } from "../report/status.ts";
import { checkPressure, PressurePace, pressureStatus } from "./pressure.ts";

export type AgentConfig = Pick<Config, "periods"> & {
  readonly values: Pick<Config["values"], "dryRun" | "runtimeRequestTimeout">;
};

/** Read by status, health and metrics, written only by the loops. */
export interface AgentState {
  readonly loops: readonly LoopState[];
  /** By the last list; `null`: none yet. */
  readonly images: { readonly count: number; readonly sizeBytes: bigint } | null;
  readonly seen: Seen | null;
  /** The filesystems of `seen`, as last measured by an observation or the pressure check. */
  readonly filesystems: readonly MeasuredFilesystem[];
  readonly pressure: PressureVerdict | null;
  /** The containers being created for which a pass waits now; `null`: none waits. */
  readonly waiting: RemovalBlock | null;
  readonly lastPasses: ReadonlyMap<Pass["kind"], PassStatus>;
  /** As of the last pass over containers; `null`: none yet. */
  readonly podSource: PodSourceState | null;
  /** When the runtime last answered a complete run of a loop; `null`: not yet. */
  readonly runtimeAnsweredAt: Instant | null;
  /** Why the runtime does not answer; `null` if it does. */
  readonly runtimeError: string | null;
}

/** Before anything was observed. */
export const emptyState: AgentState = {
  loops: [],
  images: null,
  seen: null,
  filesystems: [],
  pressure: null,
  waiting: null,
  lastPasses: new Map(),
  podSource: null,
  runtimeAnsweredAt: null,
  runtimeError: null,
};

export class Agent {
  readonly #engine: Engine;
  readonly #config: AgentConfig;
  readonly #loops: Readonly<Record<LoopName, Loop>>;
  /** Ends with the last work that was queued: only one runs at a time. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #pace: PressurePace;
  #state = emptyState;
  /** While pressure is due, ends any other pass after its removal in flight, any detection, and the waits of a command. */
  #yield = new AbortController();

  constructor(engine: Engine, config: AgentConfig) {
    this.#config = config;
    this.#engine = engine;
    this.#pace = new PressurePace(engine, config.periods.pressure);
    const periodic = { purpose: { kind: "periodic" } } as const;
    this.#loops = {
      "image-cache": this.#loop("image-cache", (signal) => this.#refreshCache(signal)),
      "image-detection": this.#loop("image-detection", (signal) => this.#detect(signal)),
      "image-gc": this.#loop("image-gc", (signal) =>
        this.#pass({ ...periodic, kind: "image-gc", containers: "none", images: true }, signal),
      ),
      "container-gc": this.#loop("container-gc", (signal) =>
        this.#pass({ ...periodic, kind: "container-gc", containers: "all", images: false }, signal),
      ),
      pressure: this.#loop("pressure", (signal) => this.#relievePressure(signal)),
    };
  }

  state(): AgentState {
    const loops = Object.values(this.#loops).map((loop) => loop.state());
    return { ...this.#state, loops };
  }

  /** Runs until `signal` aborts; finishes the removal in flight first. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(this.#loops).map((loop) => loop.repeat(signal)));
  }

  #now(): Instant {
    return this.#engine.observe.host.clocks().wall;
  }

  #loop(name: LoopName, run: (signal: AbortSignal) => Promise<RunResult>): Loop {
    return new Loop({
      name,
      engine: this.#engine,
      run,
      periodMs: this.#config.periods[name],
      pauseMs: () => this.#pauseMs(name),
      isEnabled: hasTrigger(name, this.#engine.limits()),
      failed: (thrown) => this.#noteSilence(thrown),
    });
  }

  #pauseMs(name: LoopName): number {
    const { periods } = this.#config;
    const { seen } = this.#state;
    // Without an observation there are no filesystems to check for pressure.
    const isBlind = name === "image-detection" && seen === null;
    return isBlind ? Math.min(periods[name], periods.pressure) : periods[name];
  }

  /**
   * For status, metrics and the control socket, and so that the ledger knows which images are new and which are gone, and
   * the layers of the new ones before they are old enough to go: a pass under pressure does not ask.
   */
  async #refreshCache(signal: AbortSignal): Promise<null> {
    const { engine } = this.#loops["image-cache"];
    const listed = await engine.observe.runtime.listImages(signal);
    const sizeBytes = listed.reduce((sum, image) => sum + image.sizeBytes, 0n);
    this.#noteAnswer({ images: { count: listed.length, sizeBytes } });
    seeListed(engine, listed);
    await learnLayers(engine, signal);
    return null;
  }

  async #detect(signal: AbortSignal): Promise<RunResult> {
    const loop = this.#loops["image-detection"];
    return this.#inTurn(loop, async () => {
      const { signal: hurry } = this.#yield;
      try {
        this.#noteSeen(await detect(loop.engine, AbortSignal.any([signal, hurry])));
      } catch (thrown) {
        // A pass under pressure observes the node too.
        if (!hurry.aborted) throw thrown;
      }
      return hurry.aborted ? undefined : null;
    });
  }

  /** For the pass of a command. Throws `HostError` `lock` after `waitMs`, and `stopped`. */
  async turn({ waitMs, signal }: Pick<LockWait, "waitMs" | "signal">): Promise<Turn> {
    const { promise: over, resolve: release } = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = before.then(() => over);
    const late = new AbortController();
    const patience = this.#engine.timer.sleep(waitMs, AbortSignal.any([signal, late.signal]));
    const isFree = await Promise.race([before.then(() => true), patience.then(() => false)]);
    late.abort();
    if (isFree && !signal.aborted)
      return { preempt: this.#yield.signal, [Symbol.dispose]: release };
    release();
    if (signal.aborted)
      throw new HostError("stopped", "interrupted while another pass was running");
    throw new HostError("lock", "another pass of the agent was still running; try again");
  }

  /** Of a loop or of a command. Notes nothing of its plan, which is as large as the node. */
  passEnded(pass: Pass, seen: Seen | null): void {
    this.#note({
      lastPasses: new Map(this.#state.lastPasses).set(pass.kind, passStatus(pass)),
      podSource: pass.plan.containers?.podSource ?? this.#state.podSource,
    });
    if (seen !== null) this.#noteSeen(seen);
  }

  /** Runs `work` while no other loop does the same, in the order of requests. */
  #inTurn<T>(loop: Loop, work: () => Promise<T>): Promise<T> {
    loop.queued();
    const turn = this.#last.then(() => {
      loop.resumed();
      return work();
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #pass(
    request: Pick<PassRequest, "purpose" | "containers" | "images" | "pressureTargets"> & {
      readonly kind: Exclude<PassRequest["kind"], "gc">;
    },
    signal: AbortSignal,
  ): Promise<RunResult> {
    const loop = this.#loops[request.kind];
    const { engine } = loop;
    const isUrgent = request.kind === "pressure";
    if (isUrgent) this.#yield.abort();
    const ended = await this.#inTurn(loop, async () => {
      // If asked to stop during another pass, this one does not begin.
      if (signal.aborted) return null;
      // Only now: passes that waited ahead of it yield too.
      if (isUrgent) this.#yield = new AbortController();
      const { dryRun } = this.#config.values;
      const whole: PassRequest = {
        ...request,
        dryRun,
        ...(!isUrgent && { preempt: this.#yield.signal }),
        waits: (waiting) => this.#note({ waiting }),
      };
      return await runPass(engine, whole, signal);
    });
    if (ended === null) return null;
    const { pass, seen, failure } = ended;
    this.passEnded(pass, seen);
    if (isUrgent) this.#pace.passEnded(pass);
    this.#noteSilence(failure);
    return failureOf(pass) ?? (isCutOff(pass) ? undefined : null);
  }

  /** A check costs one statfs per filesystem; it calls the runtime only once a threshold is due. */
  async #relievePressure(signal: AbortSignal): Promise<RunResult> {
    const { engine } = this.#loops.pressure;
    let unmeasured: string | null = null;
    const check = async (): Promise<PressureVerdict | null> => {
      const { filesystems: known, seen } = this.#state;
      if (known.length === 0) return null;
      const state = this.#state.pressure?.state ?? noPressure;
      const checked = await checkPressure(engine, { filesystems: known, state });
      const { verdict: pressure, filesystems } = checked;
      unmeasured = checked.failure;
      // An observation meanwhile may have found others.
      this.#note(this.#state.seen === seen ? { pressure, filesystems } : { pressure });
      return pressure;
    };
    const verdict = await check();
    if (verdict === null) return null;
    this.#tellPressure(verdict);
    const { due, reclaim, targets } = verdict;
    if (due.length === 0) {
      this.#pace.reset();
      engine.passes.awaited.clear();
    }
    if (!this.#pace.mayBegin(verdict)) return unmeasured ?? (due.length > 0 ? undefined : null);
    const failure = await this.#pass(
      {
        kind: "pressure",
        purpose: {
          kind: "pressure",
          signals: [...new Set(due.map((one) => one.threshold.signal))],
        },
        containers: reclaim.containers ? "all" : reclaim.logs ? "logs" : "none",
        images: reclaim.images,
        pressureTargets: targets,
      },
      signal,
    );
    await check();
    return unmeasured ?? failure;
  }

  #tellPressure(verdict: PressureVerdict): void {
    const { journal } = this.#engine;
    // What its passes have raised is over, too.
    if (!verdict.condition) journal.ends("pressure", "disk pressure is over");
    for (const one of pressureStatus(verdict)) {
      const key = `pressure/${one.signal} ${one.mountpoint} ${one.limit}`;
      if (!one.due || !journal.isNews(key, "EvictionThresholdMet")) continue;
      const [reason, at] = ["EvictionThresholdMet", this.#now()] as const;
      journal.event({ reason, message: pressureWords(one), at, passId: null });
    }
  }

  #note(change: Partial<AgentState>): void {
    this.#state = { ...this.#state, ...change };
  }

  #noteAnswer(change: Partial<AgentState>): void {
    this.#note({ ...change, runtimeAnsweredAt: this.#now(), runtimeError: null });
  }

  #noteSeen(seen: Seen): void {
    const { observedAt: measuredAt } = seen;
    const filesystems = seen.filesystems.map((it) => ({ ...it, measuredAt }));
    this.#noteAnswer({ seen, filesystems });
  }

  /** A disk that cannot be measured, or a lock that is taken, says nothing about the runtime. */
  #noteSilence(failure: unknown): void {
    if (failure instanceof RuntimeError) this.#note({ runtimeError: failure.message });
  }
}

function hasTrigger(name: LoopName, limits: Limits): boolean {
  if (name === "image-gc") return collectsImages(limits.images);
  return name !== "pressure" || limits.pressure.thresholds.length > 0;
}

interface LoopState extends LoopStatus {
  /** Since a run, or a removal in it, last ended; `null` while it waits for another loop's pass. */
  readonly silentMs: number | null;
}

/** How a run ended: with this failure, well (`null`), or interrupted by a more urgent pass (`undefined`). */
type RunResult = string | null | undefined;

interface LoopOptions {
  readonly name: LoopName;
  readonly engine: Engine;
  /** Configured, between the end of one run and the start of the next. */
  readonly periodMs: number;
  /** Until the next run. */
  readonly pauseMs: () => number;
  readonly isEnabled: boolean;
  readonly run: (signal: AbortSignal) => Promise<RunResult>;
  readonly failed: (thrown: unknown) => void;
}

/** From which failure in a row a loop raises an event, as in the kubelet. */
const LOOP_EVENTS: Readonly<Partial<Record<LoopName, readonly [EventReason, from: number]>>> = {
  "image-gc": ["ImageGCFailed", 2],
  pressure: ["ImageGCFailed", 2],
  "container-gc": ["ContainerGCFailed", 1],
};

const NEVER_RUN = {
  lastStartedAt: null,
  lastEndedAt: null,
  lastError: null,
  consecutiveFailures: 0,
} as const;

const NS_PER_MS = 1_000_000n;

export class Loop {
  readonly #options: LoopOptions;
  /** Its removals count as signs of life of this loop only. */
  readonly engine: Engine;
  #status: Omit<LoopStatus, "nextAt">;
  #phase: "pausing" | "waiting" | "working" = "pausing";
  /** Monotonic: when a run or a removal last ended, or its turn came. */
  #aliveNs: bigint;
  /** Monotonic: when the next run is due. */
  #nextNs: bigint;

  constructor(options: LoopOptions) {
    this.#options = options;
    const { name, periodMs, isEnabled: enabled, engine } = options;
    const { journal, timer } = engine;
    this.#status = { name, periodMs, enabled, ...NEVER_RUN };
    this.#aliveNs = timer.monotonicNs();
    this.#nextNs = this.#aliveNs;
    this.engine = { ...engine, journal: journal.with({ done: () => this.#alive() }) };
  }

  state(): LoopState {
    return { ...this.#status, nextAt: this.#nextAt(), silentMs: this.#silentMs() };
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
    const { name, engine, run, failed } = this.#options;
    const { journal } = engine;
    this.#phase = "working";
    this.#status = { ...this.#status, lastStartedAt: this.#now() };
    const error = await run(signal).catch((thrown: unknown) => {
      failed(thrown);
      return messageOf(thrown);
    });
    this.#alive();
    if (signal.aborted) return;
    const at = this.#now();
    this.#status = { ...this.#status, lastEndedAt: at };
    if (error === undefined) return;
    const failures = error === null ? 0 : this.#status.consecutiveFailures + 1;
    this.#status = { ...this.#status, lastError: error, consecutiveFailures: failures };
    if (error === null) return journal.ends(`loop/${name}`, `${name} succeeded`);
    journal.begins(`loop/${name}`, `${name} failed: ${error}`);
    const [reason, from] = LOOP_EVENTS[name] ?? [];
    if (failures === from && reason !== undefined)
      journal.event({ reason, message: error, at, passId: null });
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { engine, pauseMs } = this.#options;
    const ms = pauseMs();
    this.#phase = "pausing";
    this.#nextNs = engine.timer.monotonicNs() + BigInt(Math.ceil(ms)) * NS_PER_MS;
    await engine.timer.sleep(ms, signal);
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
