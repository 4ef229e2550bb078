/** One pass: lock, observe, remember, decide, execute, and its record. */

import { HostError, messageOf } from "../model/errors.ts";
import type { PassId } from "../model/ids.ts";
import type { ContainerOutcome, ImageOutcome } from "../model/outcome.ts";
import type { Event, Pass, PassKind, Step } from "../model/pass.ts";
import type { ImageCandidate, ImageTarget, Plan, Purpose } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { Instant } from "../model/time.ts";
import type { Parts } from "../policy/decide.ts";
import { waitsForCreations } from "../policy/image/judge.ts";
import { remainingPurpose } from "../policy/selection.ts";
import type { Announcer } from "./announcer.ts";
import { CreationWait } from "./creation-wait.ts";
import {
  collectContainers,
  collectImages,
  dryContainers,
  dryImages,
  hasTried,
  STOPPED_CONTAINERS,
  withoutImageGain,
} from "./execute-plan.ts";
import type { Meter } from "./meter.ts";
import { Observer } from "./observe.ts";
import { imageEvents } from "./pass-events.ts";
import type { Engine, Seen } from "./ports.ts";
import { prepare, type Prepared, type PrepareRequest, seenOf } from "./prepare.ts";
import { withUsedLogs } from "./read-only.ts";
import { makePassId, Steps } from "./steps.ts";

export interface PassRequest {
  readonly kind: PassKind;
  readonly purpose: Purpose;
  readonly containers: Parts["containers"];
  readonly images: boolean;
  readonly dryRun: boolean;
  readonly lockWaitMs: number;
  /** How long it waited for another loop's pass. */
  readonly turn?: Pick<Step, "startedAt" | "took">;
  readonly now: () => Instant;
  /** Random bits for the pass ID. */
  readonly random: () => number;
  readonly announcer: Announcer;
  /** For a pass under pressure: the targets as the disks are now; none ends the pass. */
  readonly retarget?: () => Promise<readonly ImageTarget[]>;
  readonly evictions?: PrepareRequest["evictions"];
  /** Aborts once a pass under pressure waits for this one, which then waits for no container that is being created. */
  readonly hurry?: AbortSignal;
  /** Called with the block when a wait for containers that are being created begins, with `null` when it ends. */
  readonly waits?: (block: ImageBlock | null) => void;
  /** Called before each image removal, to show progress on a terminal. */
  readonly starting?: (candidate: ImageCandidate, meter: Meter) => void;
}

export interface PassEnd {
  readonly pass: Pass;
  readonly seen: Seen | null;
  /** What the plan is based on; `null` if there is none. */
  readonly prepared: Prepared | null;
  /** What a list, a stat or the lock threw, for the exit code; `null` if nothing did. */
  readonly failure: unknown;
}

/** How long images wait for containers under pressure. */
const HEAD_START_MS = 500;
/** How long after the images containers may make no progress before the pass ends; less if others fill the disk. */
const [HANGING_MS, OUTRUN_MS] = [5_000, 1_000];

const NO_PLAN: Plan = { containers: null, images: null };

/** Runs one pass. Never rejects: failures are in the result and in the journal. */
export async function runPass(
  engine: Engine,
  request: PassRequest,
  signal: AbortSignal,
): Promise<PassEnd> {
  const running = new Running(engine, request, signal);
  const end = await running.run();
  engine.journal.passEnded(end.pass, end.seen);
  return end;
}

class Running {
  readonly #engine: Engine;
  readonly #request: PassRequest;
  readonly #signal: AbortSignal;
  readonly #hurry: AbortSignal;
  readonly #steps: Steps;
  readonly #id: PassId;
  readonly #startedAt: Instant;
  #prepared: Prepared | null = null;
  readonly #observer: Observer;
  readonly #wait: CreationWait;
  #plan: Plan = NO_PLAN;
  #containers: ContainerOutcome | null = null;
  /** Finished items of that part, whatever their result. */
  #containersDone = 0;
  #images: ImageOutcome | null = null;

  constructor(engine: Engine, request: PassRequest, signal: AbortSignal) {
    this.#engine = engine;
    this.#request = request;
    this.#signal = signal;
    this.#hurry = AbortSignal.any([signal, request.hurry ?? signal]);
    this.#steps = new Steps(engine, request.now);
    this.#observer = new Observer(engine.observe);
    const { purpose, waits } = request;
    const steps = this.#steps;
    this.#wait = new CreationWait(engine, { purpose, waits, steps, soonest: this.#hurry });
    if (request.turn !== undefined) this.#steps.waited("turn", request.turn);
    this.#startedAt = request.now();
    this.#id = makePassId(this.#startedAt, request.random());
  }

  async run(): Promise<PassEnd> {
    const { dryRun, lockWaitMs, kind, purpose } = this.#request;
    this.#engine.journal.passStarted({ id: this.#id, kind, purpose, startedAt: this.#startedAt });
    let release: (() => void) | null = null;
    try {
      // A dry run changes nothing, so it need not wait for a pass that does.
      if (!dryRun) {
        release = await this.#steps.run("lock", () =>
          this.#engine.lock.acquire(lockWaitMs, this.#signal),
        );
        if (release === null) throw new HostError("lock", "another pass was still running");
      }
      await this.#work();
      return this.#end(null);
    } catch (thrown) {
      if (this.#signal.aborted) {
        // What was cancelled on request has not failed.
        if (this.#request.containers !== "none") this.#containers ??= STOPPED_CONTAINERS;
        if (this.#request.images) this.#images ??= { ...dryImages(this.#plan), end: "stopped" };
        return this.#end(null);
      }
      return this.#end(thrown);
    } finally {
      release?.();
    }
  }

  async #work(): Promise<void> {
    const { containers, images, dryRun, retarget } = this.#request;
    const first = await this.#prepare({ containers, images }, (await retarget?.()) ?? []);
    this.#prepared = first;
    this.#plan = first.plan;
    if (dryRun) {
      this.#containers =
        first.plan.containers === null ? null : dryContainers(first.plan.containers);
      this.#images = first.plan.images === null ? null : dryImages(first.plan);
      return;
    }
    const { timer } = this.#engine;
    const [enough, ended] = [new AbortController(), new AbortController()];
    let isParallel = false;
    const collecting = this.#collectContainers(first, enough.signal).finally(() => ended.abort());
    try {
      const soonest = AbortSignal.any([this.#signal, ended.signal]);
      await (this.#imagesWaitBriefly(first)
        ? this.#steps.wait("containers", () => timer.sleep(HEAD_START_MS, soonest))
        : collecting);
      isParallel = !ended.signal.aborted;
      if (first.plan.images !== null && !this.#signal.aborted) await this.#collectImages(first);
      await this.#steps.wait("containers", () => this.#untilHanging(ended.signal));
    } finally {
      // Something that hangs must not delay the next pass.
      enough.abort();
      await collecting;
      if (isParallel) this.#containers = withoutImageGain(this.#containers, this.#images);
    }
  }

  /** Until the container part has ended, or has made no progress for a while. */
  async #untilHanging(ended: AbortSignal): Promise<void> {
    const patienceMs = this.#images?.end === "own-gain-reached" ? OUTRUN_MS : HANGING_MS;
    for (let before = -1; before !== this.#containersDone && !ended.aborted;) {
      before = this.#containersDone;
      await this.#engine.timer.sleep(patienceMs, AbortSignal.any([ended, this.#signal]));
    }
  }

  async #collectContainers(first: Prepared, enough: AbortSignal): Promise<void> {
    if (first.plan.containers === null) return;
    const signal = AbortSignal.any([this.#signal, enough]);
    const run = { ...this.#run(), signal, containerDone: () => (this.#containersDone += 1) };
    this.#containers = await this.#steps.run("execute", () =>
      collectContainers(this.#engine, first, run),
    );
  }

  /** Under pressure images do not wait for slow containers: one that hangs would let the disk fill up. */
  #imagesWaitBriefly({ plan }: Prepared): boolean {
    const { compat, maximumRemovals } = this.#engine.limits().images;
    const underPressure = this.#request.purpose.kind === "pressure" && compat === "none";
    // A limit of removals counts both, so they run one after the other.
    return underPressure && plan.images !== null && maximumRemovals === null;
  }

  async #collectImages(first: Prepared): Promise<void> {
    const prepared = await this.#preparedForImages(first);
    if (prepared === null) return;
    const { starting, retarget } = this.#request;
    const run = { ...this.#run(), starting, retarget, before: this.#containers };
    this.#images = await this.#steps.run("execute", () =>
      collectImages(this.#engine, prepared, run),
    );
  }

  /**
   * If containers were collected first, observes the node again and keeps the part of the first plan that still holds:
   * nothing outside the plan made at the start is removed.
   */
  async #preparedForImages(first: Prepared): Promise<Prepared | null> {
    const { retarget } = this.#request;
    if (first.plan.containers === null) return first;
    const waits = waitsForCreations(first.plan);
    if (!waits && !hasTried(this.#containers)) return first;
    const targets = (await retarget?.()) ?? [];
    if (retarget !== undefined && targets.length === 0) return null;
    const purpose = remainingPurpose(this.#request.purpose, first.plan.images);
    const again = await this.#prepare({ containers: "none", images: true }, targets, purpose);
    const images = again.plan.images;
    if (images === null) return null;
    const planned = new Set(first.plan.images?.candidates.map((candidate) => candidate.image.id));
    // A plan that had to wait for containers has no candidates yet, so the one after the wait counts as the first.
    const candidates = images.candidates.filter(({ image }) => waits || planned.has(image.id));
    const plan: Plan = { containers: first.plan.containers, images: { ...images, candidates } };
    this.#plan = plan;
    return { ...again, plan };
  }

  async #prepare(
    parts: Parts,
    pressureTargets: readonly ImageTarget[],
    purpose: Purpose = this.#request.purpose,
  ): Promise<Prepared> {
    const { dryRun, retarget, evictions } = this.#request;
    for (let targets = pressureTargets; ;) {
      const creationPatience = this.#wait.patience();
      const wanted = { purpose, parts, pressureTargets: targets, evictions, creationPatience };
      const prepared = await prepare(
        this.#engine,
        { ...wanted, remembers: !dryRun },
        { ...this.#run(), hurry: this.#hurry },
      );
      // Containers are collected first.
      const waits = parts.containers === "none" && waitsForCreations(prepared.plan);
      if (dryRun) return withUsedLogs(this.#engine, prepared, this.#signal);
      if (!waits || !this.#wait.mayWait()) return prepared;
      await this.#wait.untilCreated(prepared.snapshot, this.#observer, this.#signal);
      targets = (await retarget?.()) ?? targets;
    }
  }

  #run() {
    return {
      id: this.#id,
      now: this.#request.now,
      signal: this.#signal,
      steps: this.#steps,
      observer: this.#observer,
      creations: this.#wait,
    };
  }

  #end(failure: unknown): PassEnd {
    const pass: Pass = {
      id: this.#id,
      kind: this.#request.kind,
      purpose: this.#request.purpose,
      startedAt: this.#startedAt,
      endedAt: this.#request.now(),
      dryRun: this.#request.dryRun,
      plan: this.#plan,
      images: this.#images,
      containers: this.#containers,
      events: this.#raise(),
      steps: this.#steps.list(),
      error: failure === null ? null : messageOf(failure),
    };
    this.#wait.rememberHeldUp(this.#engine.memory, pass);
    const prepared = this.#prepared;
    const seen = prepared === null ? null : seenOf(this.#engine, prepared.snapshot);
    return { pass, seen, prepared, failure };
  }

  #raise(): readonly Event[] {
    const { images } = this.#plan;
    if (images === null || this.#images === null || this.#request.dryRun) return [];
    const { accounting } = this.#engine.limits().images;
    const about = { id: this.#id, now: this.#request.now(), accounting };
    const events = imageEvents(images, this.#images, about);
    return this.#request.announcer.passed(events, images, this.#images.end);
  }
}
