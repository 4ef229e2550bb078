/** One pass, from top to bottom: observe and decide, remove, record. */

import { messageOf } from "../model/errors.ts";
import type { ContainerOutcome, Event, ImageOutcome, Pass, PassKind, Step } from "../model/pass.ts";
import type { ImageTarget, Plan, Purpose } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import { duration, type Instant, plus } from "../model/time.ts";
import type { Parts } from "../policy/facts.ts";
import { waitsForCreations } from "../policy/image/judge.ts";
import { remainingPurpose } from "../policy/selection.ts";
import type { Announcer } from "./announcer.ts";
import { HANGING_MS, HURRY } from "./calls.ts";
import { CreationWait } from "./creation-wait.ts";
import {
  collectContainers,
  collectImages,
  dryContainers,
  dryImages,
  hasTried,
  nextMayRemove,
  type PassContext,
  STOPPED_CONTAINERS,
  withoutImageGain,
} from "./execute-plan.ts";
import { unmeasuredIn } from "./observe.ts";
import { imageEvents } from "./pass-warnings.ts";
import type { Engine, Seen } from "./ports.ts";
import { observerOf, prepare, type Prepared, type PrepareRequest, seenOf } from "./prepare.ts";
import { withUsedLogs } from "./read-only.ts";
import { makePassId, Steps } from "./steps.ts";

export interface PassRequest extends Pick<PassContext, "starting" | "retarget"> {
  readonly kind: PassKind;
  readonly purpose: Purpose;
  readonly containers: Parts["containers"];
  readonly images: boolean;
  readonly dryRun: boolean;
  /** How long it waited for another pass. */
  readonly turn?: Pick<Step, "startedAt" | "took">;
  readonly announcer: Announcer;
  readonly evictions?: PrepareRequest["evictions"];
  /** Aborts once a pass under pressure waits for this one, which then waits for no container that is being created. */
  readonly hurry?: AbortSignal;
  /** Ends the wait for containers that are being created, and nothing else. */
  readonly soonest?: AbortSignal;
  /** Called with the block when a wait for containers that are being created begins, with `null` when it ends. */
  readonly waits?: (block: ImageBlock | null) => void;
}

export interface PassEnd {
  readonly pass: Pass;
  readonly seen: Seen | null;
  /** What the plan is based on; `null` if there is none. */
  readonly prepared: Prepared | null;
  /** What a list or a stat threw, for the exit code; `null` if nothing did. */
  readonly failure: unknown;
}

/** How long images wait for containers under pressure. */
const HEAD_START_MS = 500;
/** How often containers that go on after the images, and the disks, are looked at. */
const LOOK_MS = 1_000;

/** Runs one pass. Never rejects: failures are in the result and in the journal. */
export async function runPass(
  engine: Engine,
  request: PassRequest,
  signal: AbortSignal,
): Promise<PassEnd> {
  const end = await new RunningPass(engine, request, signal).run();
  engine.journal.passEnded(end.pass, end.seen);
  return end;
}

class RunningPass {
  readonly #engine: Engine;
  readonly #request: PassRequest;
  readonly #signal: AbortSignal;
  readonly #hurry: AbortSignal;
  readonly #startedAt: Instant;
  readonly #startNs: bigint;
  readonly #context: PassContext;
  #prepared: Prepared | null = null;
  #plan: Plan = { containers: null, images: null };
  #containers: ContainerOutcome | null = null;
  /** Finished items of that part, whatever their result. */
  #containersDone = 0;
  #images: ImageOutcome | null = null;

  constructor(engine: Engine, request: PassRequest, signal: AbortSignal) {
    const { purpose, waits, starting, retarget, turn } = request;
    this.#engine = engine;
    this.#request = request;
    this.#signal = signal;
    this.#hurry = AbortSignal.any([signal, request.hurry ?? signal]);
    const steps = new Steps(engine);
    if (turn !== undefined) steps.waited("turn", turn);
    this.#startedAt = steps.now();
    this.#startNs = engine.timer.monotonicNs();
    const soonest = AbortSignal.any([this.#hurry, request.soonest ?? signal]);
    const creations = new CreationWait(engine, { purpose, waits, steps, soonest });
    const observer = observerOf(engine);
    const id = makePassId(this.#startedAt);
    this.#context = { id, steps, observer, creations, starting, retarget };
  }

  async run(): Promise<PassEnd> {
    const { dryRun, kind, purpose, containers, images } = this.#request;
    const { id } = this.#context;
    this.#engine.journal.passStarted({ id, kind, purpose, startedAt: this.#startedAt });
    try {
      const prepared = await this.#decide({ containers, images }, await this.#targets());
      this.#prepared = prepared;
      this.#plan = prepared.plan;
      if (dryRun) this.#recordDryRun(prepared.plan);
      else await this.#remove(prepared);
      return this.#record(unmeasuredIn(prepared.snapshot));
    } catch (thrown) {
      if (!this.#signal.aborted) return this.#record(thrown);
      // What was cancelled on request has not failed.
      if (containers !== "none") this.#containers ??= STOPPED_CONTAINERS;
      if (images) this.#images ??= { ...dryImages(this.#plan), end: "stopped" };
      return this.#record(null);
    }
  }

  /** The targets of a pass under pressure, as the disks are now. */
  async #targets(): Promise<readonly ImageTarget[]> {
    return (await this.#request.retarget?.()) ?? [];
  }

  /** Observes the node, remembers what it saw, and decides; waits for containers that are being created. */
  async #decide(
    parts: Parts,
    pressureTargets: readonly ImageTarget[],
    purpose: Purpose = this.#request.purpose,
  ): Promise<Prepared> {
    const { dryRun, retarget, evictions } = this.#request;
    const { creations, observer } = this.#context;
    const run = { ...this.#context, signal: this.#signal, hurry: this.#hurry };
    for (let targets = pressureTargets; ;) {
      const creationPatience = creations.patience();
      const wanted = { purpose, parts, pressureTargets: targets, evictions, creationPatience };
      const prepared = await prepare(this.#engine, { ...wanted, remembers: !dryRun }, run);
      if (dryRun) return withUsedLogs(this.#engine, prepared, this.#signal);
      // Containers are collected first.
      const waits = parts.containers === "none" && waitsForCreations(prepared.plan);
      if (!waits || !creations.mayWait()) return prepared;
      await creations.untilCreated(prepared.snapshot, observer, this.#signal);
      targets = (await retarget?.()) ?? targets;
    }
  }

  /** Containers, sandboxes and logs, then images; under pressure these wait only briefly: a container that hangs would let the disk fill up. */
  async #remove(prepared: Prepared): Promise<void> {
    const { timer } = this.#engine;
    const { steps } = this.#context;
    const { images } = prepared.plan;
    const [enough, ended] = [new AbortController(), new AbortController()];
    let isParallel = false;
    const collecting = this.#removeContainers(prepared, enough.signal).finally(() => ended.abort());
    try {
      const soonest = AbortSignal.any([this.#signal, ended.signal]);
      if (images !== null && this.#isUnderPressure())
        await steps.wait("containers", () => timer.sleep(HEAD_START_MS, soonest));
      else if (images !== null || !this.#isUnderPressure()) await collecting;
      isParallel = !ended.signal.aborted;
      if (images !== null && !this.#signal.aborted) await this.#removeImages(prepared);
      const patienceMs = images === null ? Infinity : HANGING_MS;
      await steps.wait("containers", () => this.#untilImagesNeeded(ended.signal, patienceMs));
    } finally {
      // Something that hangs must not delay the next pass.
      enough.abort(HURRY);
      await collecting;
      if (isParallel) this.#containers = withoutImageGain(this.#containers, this.#images);
    }
  }

  #isUnderPressure(): boolean {
    const { compat } = this.#engine.limits().images;
    return this.#request.purpose.kind === "pressure" && compat === "none";
  }

  /** Until the container part has ended or made no progress for so long, or a disk under pressure needs images again. */
  async #untilImagesNeeded(ended: AbortSignal, patienceMs: number): Promise<void> {
    const { timer } = this.#engine;
    const stop = AbortSignal.any([ended, this.#signal]);
    let [done, waitedMs] = [this.#containersDone, 0];
    for (let idleMs = 0; idleMs < patienceMs && !stop.aborted;) {
      await timer.sleep(LOOK_MS, stop);
      waitedMs += LOOK_MS;
      idleMs = done === this.#containersDone ? idleMs + LOOK_MS : 0;
      done = this.#containersDone;
      if (nextMayRemove(this.#images, waitedMs) && (await this.#targets()).length > 0) return;
    }
  }

  async #removeContainers(prepared: Prepared, enough: AbortSignal): Promise<void> {
    if (prepared.plan.containers === null) return;
    const signal = AbortSignal.any([this.#signal, enough]);
    const done = (): void => void (this.#containersDone += 1);
    this.#containers = await this.#context.steps.run("execute", () =>
      collectContainers(this.#engine, prepared, { ...this.#context, signal, done }),
    );
  }

  async #removeImages(first: Prepared): Promise<void> {
    const prepared = await this.#decidedForImages(first);
    if (prepared === null) return;
    const run = { ...this.#context, signal: this.#signal };
    this.#images = await this.#context.steps.run("execute", () =>
      collectImages(this.#engine, prepared, run),
    );
  }

  /**
   * If containers were collected first, observes the node again and keeps the part of the first plan that still holds:
   * nothing outside the plan made at the start is removed.
   */
  async #decidedForImages(first: Prepared): Promise<Prepared | null> {
    if (first.plan.containers === null) return first;
    const waits = waitsForCreations(first.plan);
    if (!waits && !hasTried(this.#containers)) return first;
    const targets = await this.#targets();
    if (this.#request.retarget !== undefined && targets.length === 0) return null;
    const purpose = remainingPurpose(this.#request.purpose, first.plan.images);
    const again = await this.#decide({ containers: "none", images: true }, targets, purpose);
    const images = again.plan.images;
    if (images === null) return null;
    const planned = new Set(first.plan.images?.candidates.map((candidate) => candidate.image.id));
    // A plan that had to wait for containers has no candidates yet, so the one after the wait counts as the first.
    const candidates = images.candidates.filter(({ image }) => waits || planned.has(image.id));
    this.#plan = { containers: first.plan.containers, images: { ...images, candidates } };
    return { ...again, plan: this.#plan };
  }

  #recordDryRun(plan: Plan): void {
    this.#containers = plan.containers === null ? null : dryContainers(plan.containers);
    this.#images = plan.images === null ? null : dryImages(plan);
  }

  #record(failure: unknown): PassEnd {
    const { kind, purpose, dryRun } = this.#request;
    const { id, steps, creations } = this.#context;
    // By the clock as it was at the start: one that is set meanwhile must not count as time that the pass took.
    const endedAt = plus(
      this.#startedAt,
      duration(this.#engine.timer.monotonicNs() - this.#startNs),
    );
    const pass: Pass = {
      id,
      kind,
      purpose,
      startedAt: this.#startedAt,
      endedAt,
      dryRun,
      plan: this.#plan,
      images: this.#images,
      containers: this.#containers,
      events: this.#warn(endedAt),
      steps: steps.list(),
      error: failure === null ? null : messageOf(failure),
    };
    creations.rememberHeldUp(this.#engine.memory, pass);
    const prepared = this.#prepared;
    const seen = prepared === null ? null : seenOf(prepared.snapshot);
    return { pass, seen, prepared, failure };
  }

  #warn(now: Instant): readonly Event[] {
    const { images } = this.#plan;
    if (images === null || this.#images === null || this.#request.dryRun) return [];
    const { accounting } = this.#engine.limits().images;
    const events = imageEvents(images, this.#images, { id: this.#context.id, now, accounting });
    return this.#request.announcer.passed(events, images, this.#images.end);
  }
}
