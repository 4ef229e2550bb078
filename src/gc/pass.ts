/** One pass, from top to bottom: observe and decide, remove, record. */

import { messageOf } from "../model/errors.ts";
import { type PassId, passId } from "../model/ids.ts";
import {
  type ContainerOutcome,
  type Event,
  type EventReason,
  type ImageOutcome,
  isGone,
  type Pass,
  type PassKind,
} from "../model/pass.ts";
import type { ImageTarget, Plan, Purpose } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Seen } from "../model/reports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { duration, type Instant, plus, toRfc3339 } from "../model/time.ts";
import type { Parts } from "../policy/facts.ts";
import { forgetRemoved } from "../policy/remember.ts";
import { PASS_ENDS } from "../report/pass-words.ts";
import { impatient } from "./calls.ts";
import { freshNode, untilStarted } from "./fresh-lists.ts";
import { unmeasuredIn } from "./observe.ts";
import { imageEvents, shortageOf } from "./pass-warnings.ts";
import type { Engine } from "./ports.ts";
import { type Begun, prepare, type Prepared, seenOf } from "./prepare.ts";
import { noContainers, removeContainers } from "./remove-containers.ts";
import { noImages, removeImages } from "./remove-images.ts";

export interface PassRequest extends Parts {
  readonly kind: PassKind;
  readonly purpose: Purpose;
  readonly requestedBy?: string;
  readonly dryRun: boolean;
  /** Of a pass of the agent under pressure: what would end it. */
  readonly pressureTargets?: readonly ImageTarget[];
  /** Aborts when an eviction threshold is met: a periodic pass ends after its removal in flight, a command's waits end. */
  readonly preempt?: AbortSignal;
  /** Called with the block when a wait for pods that are starting begins, with `null` when it ends. */
  readonly waits?: (block: RemovalBlock | null) => void;
}

export interface PassEnd {
  readonly pass: Pass;
  readonly seen: Seen | null;
  /** What a list or a stat threw, for the exit code; `null` if nothing did. */
  readonly failure: unknown;
}

/** Runs one pass; on `stop` it ends after the removal in flight. Never rejects: failures are in the result and in the journal. */
export async function runPass(
  engine: Engine,
  request: PassRequest,
  stop: AbortSignal,
): Promise<PassEnd> {
  const end = await new RunningPass(engine, request, stop).run();
  engine.journal.passEnded(end.pass, end.seen);
  return end;
}

class RunningPass {
  readonly #engine: Engine;
  readonly #request: PassRequest;
  readonly #stop: AbortSignal;
  /** Ends waits: for pods that are starting, and for space. */
  readonly #endWaits: AbortSignal;
  readonly #id: Pass["id"];
  readonly #startedAt: Instant;
  readonly #startNs: bigint;
  #prepared: Prepared | null = null;
  #containers: ContainerOutcome | null = null;
  #images: ImageOutcome | null = null;

  constructor(engine: Engine, request: PassRequest, stop: AbortSignal) {
    const { kind, preempt = stop } = request;
    this.#engine = engine;
    this.#request = request;
    this.#endWaits = AbortSignal.any([stop, preempt]);
    this.#stop = kind === "gc" ? stop : this.#endWaits;
    this.#startedAt = this.#now();
    this.#startNs = engine.timer.monotonicNs();
    this.#id = makePassId(this.#startedAt);
  }

  async run(): Promise<PassEnd> {
    const { dryRun, kind, purpose } = this.#request;
    this.#engine.journal.passStarted({ id: this.#id, kind, purpose, startedAt: this.#startedAt });
    try {
      const prepared = await this.#prepare();
      this.#prepared = prepared;
      if (dryRun) this.#end("dry-run");
      else if (purpose.kind === "pressure" && !this.#engine.policy.containersFirst) {
        await this.#removeImages(prepared);
        await this.#removeContainers(prepared);
      } else {
        await this.#removeContainers(prepared);
        await this.#removeImages(prepared);
      }
      // What was cancelled on request has not failed.
      if (this.#stop.aborted) this.#end("stopped");
      return this.#record(unmeasuredIn(prepared.snapshot));
    } catch (thrown) {
      if (!this.#stop.aborted) return this.#record(thrown);
      this.#end("stopped");
      return this.#record(null);
    }
  }

  #now(): Instant {
    return this.#engine.observe.host.clocks().wall;
  }

  /** Observes the node, remembers what it saw, and decides. */
  #prepare(): Promise<Begun> {
    const { kind, purpose, containers, images, pressureTargets = [], dryRun } = this.#request;
    const isCommand = kind === "gc";
    const request = {
      purpose,
      parts: { containers, images },
      pressureTargets: isCommand ? null : pressureTargets,
      // Each command tries anew.
      paused: isCommand ? new Map() : this.#engine.passes.paused(),
      remembers: !dryRun,
    };
    return prepare(this.#engine, request, this.#stop);
  }

  async #removeContainers(prepared: Begun): Promise<void> {
    const { containers: plan } = prepared.plan;
    if (plan === null || this.#stop.aborted) return;
    const engine = this.#engine;
    const { snapshot, listedNs, observer } = prepared;
    const isUrgent = this.#request.purpose.kind === "pressure";
    const ports = { runtime: engine.observe.runtime, writer: engine.writer };
    const outcome = await removeContainers({
      ...engine,
      ...(isUrgent ? impatient(ports, engine.timer) : ports),
      plan,
      logs: snapshot.logs === null ? null : engine.remover,
      lists: observer.pods,
      listedNs,
      decideAgain: async (lists) => {
        const { host } = engine.observe;
        const logs = await host.logs();
        const pods = await host.pods(this.#stop);
        const now = { ...prepared, snapshot: { ...snapshot, logs, pods }, hold: engine.hold() };
        return engine.policy.decideContainers(now, lists);
      },
      held: () => engine.hold().kind !== "none",
      measureFree: () => this.#freeOfContainers(snapshot),
      signal: this.#stop,
      done: (item) => engine.journal.done(this.#id, item),
    });
    engine.stepDone?.();
    this.#containers = outcome;
    const gone = {
      containers: outcome.containers.filter(isGone).map(({ planned }) => planned.container.id),
      sandboxes: outcome.sandboxes.filter(isGone).map(({ sandbox }) => sandbox.id),
    };
    if (gone.containers.length + gone.sandboxes.length > 0)
      engine.memory.replace(forgetRemoved(engine.memory.current(), gone));
  }

  async #freeOfContainers({ filesystems }: Snapshot): Promise<bigint | null> {
    const place =
      filesystems.find(({ roles }) => roles.includes("containerfs")) ??
      filesystems.find(({ roles }) => roles.includes("imagefs"));
    if (place === undefined) return null;
    const reading = await this.#engine.observe.disk.measure(place.path);
    return reading.freeBytes ?? reading.availableBytes;
  }

  async #removeImages(prepared: Begun): Promise<void> {
    const { images: plan } = prepared.plan;
    if (plan === null || this.#stop.aborted) return;
    const engine = this.#engine;
    const { purpose, waits } = this.#request;
    const endWaits = this.#endWaits;
    const node = freshNode(engine, prepared, this.#stop);
    // What containers used may be unused once they are removed, and others may have started.
    if (this.#containers !== null) node.expire();
    this.#images = await removeImages({
      ...engine,
      ...engine.observe,
      plan,
      facts: prepared,
      now: () => this.#now(),
      look: untilStarted(engine, { node, purpose, endWaits, waits }),
      stop: this.#stop,
      endWaits,
      done: (item) => engine.journal.done(this.#id, item),
    });
    engine.stepDone?.();
  }

  /** How the halves end that have not begun. */
  #end(end: "dry-run" | "stopped"): void {
    const { containers, images } = this.#request;
    const plan = this.#plan;
    if (containers !== "none") this.#containers ??= noContainers(plan.containers, end);
    if (images) this.#images ??= noImages(plan.images, end);
  }

  get #plan(): Plan {
    return this.#prepared?.plan ?? { containers: null, images: null };
  }

  #record(failure: unknown): PassEnd {
    const { kind, purpose, dryRun, requestedBy } = this.#request;
    // By the clock as it was at the start: one that is set meanwhile must not count as time that the pass took.
    const endedAt = plus(
      this.#startedAt,
      duration(this.#engine.timer.monotonicNs() - this.#startNs),
    );
    const pass: Pass = {
      id: this.#id,
      kind,
      purpose,
      ...(requestedBy !== undefined && { requestedBy }),
      startedAt: this.#startedAt,
      endedAt,
      dryRun,
      plan: this.#plan,
      images: this.#images,
      containers: this.#containers,
      events: this.#raise(endedAt),
      error: failure === null ? null : messageOf(failure),
    };
    const prepared = this.#prepared;
    const seen = prepared === null ? null : seenOf(prepared.snapshot);
    return { pass, seen, failure };
  }

  /** Raises the events whose condition begins, and returns them. */
  #raise(now: Instant): readonly Event[] {
    const { dryRun, purpose } = this.#request;
    const { images } = this.#plan;
    if (images === null || this.#images === null || dryRun) return [];
    const { journal } = this.#engine;
    const key = `${purpose.kind}/images`;
    const invalid = `${key}/KeepRulesInvalid`;
    // The plan shows this one to be over, whatever the pass then does.
    if (!images.blocks.some(({ kind }) => kind === "keep-rules-invalid")) journal.ends(invalid);
    // A pass that failed or was ended does not show that its condition is over.
    if (PASS_ENDS[this.#images.end].isRelieved === true) journal.ends(key);
    const keys: Partial<Record<EventReason, string>> = {
      FreeDiskSpaceFailed: `${key}/${shortageOf(images, this.#images)}`,
      KeepRulesInvalid: invalid,
    };
    const news = imageEvents(images, this.#images, { id: this.#id, now }).filter(({ reason }) => {
      // A pass that tried every candidate was not futile: that would begin anew.
      if (reason === "FreeDiskSpaceFailed") journal.isNews(key, reason);
      return reason === "GhostImage" || journal.isNews(keys[reason] ?? key, reason);
    });
    for (const event of news) journal.event(event);
    return news;
  }
}

/** `20260101T000000Z-1a2b3c`, sortable by time. */
function makePassId(now: Instant): PassId {
  const stamp = toRfc3339(now).slice(0, 19).replaceAll(/[-:]/g, "");
  const random = Math.floor(Math.random() * 2 ** 24);
  return passId(`${stamp}Z-${random.toString(16).padStart(6, "0")}`);
}
