/** From observation to plan: observe, remember, decide. Removes nothing; every command uses it. */

import type { Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { ageNow } from "../policy/age-clock.ts";
import { rememberPods } from "../policy/container/pods.ts";
import { decide } from "../policy/decide.ts";
import type { Facts } from "../policy/facts.ts";
import { usageOf } from "../policy/image/usage.ts";
import { compileKeepRules, unmatchedKeepRules } from "../policy/keep/keep.ts";
import { rememberOrigins } from "../policy/origins.ts";
import { metTargets } from "../policy/pressure/thresholds.ts";
import { forgetRemoved, forgetUnlisted, remember, seeImages } from "../policy/remember.ts";
import { readOrigins } from "./details.ts";
import { Observer, readPodDirectories } from "./observe.ts";
import type { ReadEngine, Seen } from "./ports.ts";
import type { Steps } from "./steps.ts";

export interface PrepareRequest extends Pick<
  Facts,
  "purpose" | "parts" | "pressureTargets" | "awaited" | "paused"
> {
  /** For a single pass: eviction thresholds that this observation meets are targets too. */
  readonly evictions?: boolean | undefined;
  /** Whether to read the layers of all images, even if they decide nothing. */
  readonly allLayers?: boolean;
  /** Whether to store what was seen in the ledger; read-only commands do not. */
  readonly remembers: boolean;
}

/** A plan and what it was decided from. */
export interface Prepared extends Facts {
  readonly plan: Plan;
  /** When the snapshot's lists were requested, by the monotonic clock. */
  readonly listedNs: bigint;
}

export interface PrepareRun {
  readonly observer: Observer;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

/** Observes the node and decides. Rejects if a list or a stat fails, without a plan. */
export async function prepare(
  engine: ReadEngine,
  request: PrepareRequest,
  run: PrepareRun,
): Promise<Prepared> {
  const { observer, steps, signal } = run;
  const { purpose, parts, awaited, paused, evictions } = request;
  const listedNs = engine.timer.monotonicNs();
  const snapshot = await steps.run("observe", () =>
    look(engine, { observer, logs: parts.containers !== "none" }, signal),
  );
  forgetGoing(engine, observer);
  const ledger = await steps.run("remember", () => rememberNode(engine, snapshot, request));
  const limits = engine.limits();
  const facts: Facts = {
    snapshot,
    ledger,
    limits,
    purpose,
    parts,
    hold: engine.hold(),
    startedAt: engine.startedAt,
    agesFrom: engine.memory.agesFrom?.(ledger),
    pressureTargets:
      evictions === true
        ? metNow({ limits, filesystems: snapshot.filesystems })
        : request.pressureTargets,
    awaited,
    paused,
    last: engine.passes.last(),
  };
  const prepared = await steps.run("decide", () =>
    withStarting(engine, { ...facts, plan: decide(facts), listedNs }, request),
  );
  if (!needsLayers(prepared, request)) return prepared;
  return steps.run("layers", () => withLayers(engine, { prepared, request }, run));
}

/**
 * The same plan with the pods that are starting. Only what would be removed can be held up; commands that show a plan show
 * the block in any case.
 */
async function withStarting(
  engine: ReadEngine,
  prepared: Prepared,
  { remembers }: PrepareRequest,
): Promise<Prepared> {
  const { images } = prepared.plan;
  if (images === null || (images.candidates.length === 0 && remembers)) return prepared;
  const snapshot = await readPodDirectories(engine.observe.host, prepared.snapshot);
  return decidedAgain(prepared, (it) => it, snapshot);
}

/** The plan by what was learned since it was made. */
function decidedAgain(
  prepared: Prepared,
  learn: (ledger: Ledger) => Ledger,
  snapshot = prepared.snapshot,
): Prepared {
  const facts = { ...prepared, snapshot, ledger: learn(prepared.ledger) };
  return { ...facts, plan: decide(facts) };
}

function replaceIfChanged(
  { memory }: Pick<ReadEngine, "memory">,
  learn: (ledger: Ledger) => Ledger,
): void {
  const before = memory.current();
  const after = learn(before);
  if (after !== before) memory.replace(after);
}

/**
 * Under pressure no call is made that a removal would have to wait for; if no image may be removed, layers decide
 * nothing.
 */
function needsLayers(prepared: Prepared, request: PrepareRequest): boolean {
  const { images } = prepared.plan;
  const { origins } = prepared.ledger;
  const limits = prepared.limits.images;
  if (limits.compat === "kubelet" || request.purpose.kind === "pressure") return false;
  if (prepared.snapshot.images.every(({ id }) => origins.has(id))) return false;
  // Build dates come with them, which decide the order of images of equal age; one that is removed by hand has none.
  const isByHand = request.remembers && request.purpose.kind === "all-unused";
  return request.allLayers === true || (images?.candidates.length ?? 0) > Number(isByHand);
}

/** The same plan with the layers of images that detection has not read yet. */
async function withLayers(
  engine: ReadEngine,
  { prepared, request }: { readonly prepared: Prepared; readonly request: PrepareRequest },
  { signal }: PrepareRun,
): Promise<Prepared> {
  const { images } = prepared.snapshot;
  const known = prepared.ledger.origins;
  const read = await readOrigins(engine.observe.runtime, { images, known }, signal);
  if (read.origins.size === 0) return prepared;
  const { origins } = read;
  const learn = (ledger: Ledger): Ledger => ({
    ...ledger,
    ...rememberOrigins(ledger, images, origins),
  });
  if (request.remembers) replaceIfChanged(engine, learn);
  return decidedAgain(prepared, learn);
}

/** Under pressure the pass removes containers meanwhile; these have not vanished. */
function forgetGoing({ memory }: ReadEngine, { pods: { removed } }: Observer): void {
  if (removed.size === 0) return;
  const before = memory.current();
  const remaining = [...before.containers.keys()].filter((id) => !removed.has(id)).length;
  memory.replace(forgetRemoved(before, { containers: [...removed], sandboxes: [], remaining }));
}

/** What relieves the eviction thresholds that are met, beside the triggers of a periodic pass. */
const metNow = ({
  limits,
  filesystems,
}: Pick<Facts, "limits"> & Pick<Snapshot, "filesystems">): Facts["pressureTargets"] =>
  metTargets({ limits: limits.pressure, compat: limits.images.compat, filesystems });

/**
 * Only passes that also read the log directories judge pods; other observations leave their records alone. Starts from
 * the newest ledger and stores the result at once, so that nothing recorded by another loop is lost.
 */
function rememberNode(
  engine: ReadEngine,
  snapshot: Snapshot,
  { parts, remembers }: Pick<PrepareRequest, "parts" | "remembers">,
): Ledger {
  const before = engine.memory.current();
  const seen = remembered(engine, snapshot, before.pods);
  const view = { ...snapshot, watched: seen.watched, limits: engine.limits().memory };
  // The kubelet's container GC lists no images.
  const isBlind = view.limits.compat === "kubelet" && !parts.images;
  const ledger = {
    ...seen,
    ...(isBlind && { images: before.images }),
    ...(parts.containers !== "none" && { pods: rememberPods(before.pods, view) }),
  };
  if (!remembers) return ledger;
  engine.memory.replace(ledger);
  return ledger;
}

/**
 * Detection: one observation, recorded in the ledger, without deciding or removing anything. Only container passes judge
 * pods, so their records stay as they are.
 */
export async function detect(engine: ReadEngine, signal: AbortSignal): Promise<Seen> {
  const observer = observerOf(engine);
  const snapshot = await look(engine, { observer, logs: false }, signal);
  engine.memory.replace(remembered(engine, snapshot, engine.memory.current().pods));
  engine.memory.save();
  return seenOf(snapshot);
}

/** An observer whose lists of images drop the records of those that they lack. */
export const observerOf = (engine: ReadEngine): Observer =>
  new Observer(engine.observe, (listed) => seeListed(engine, listed));

/**
 * Every list of images counts: one that it lacks is gone, though it may come back before the next observation, and one that
 * was not known is first seen now.
 */
export function seeListed(
  engine: Pick<ReadEngine, "memory" | "limits" | "observe">,
  listed: Snapshot["images"],
): void {
  const { memory } = engine.limits();
  if (memory.compat === "kubelet") return;
  const clocks = engine.observe.host.clocks();
  replaceIfChanged(engine, (ledger) => {
    const watched = ageNow(ledger, clocks);
    return seeImages(forgetUnlisted(ledger, listed), listed, { wall: clocks.wall, watched });
  });
}

async function look(
  engine: ReadEngine,
  { observer, logs }: { readonly observer: Observer; readonly logs: boolean },
  signal: AbortSignal,
): Promise<Snapshot> {
  const ledger = engine.memory.current();
  return observer.observe({ ledger, logs }, signal);
}

/** The ledger after this snapshot, with the given records of pods. */
function remembered(engine: ReadEngine, snapshot: Snapshot, pods: Ledger["pods"]): Ledger {
  return remember({
    ledger: engine.memory.current(),
    snapshot,
    usage: usageOf(snapshot),
    limits: engine.limits().memory,
    pods,
  });
}

export const seenOf = (snapshot: Snapshot): Seen => ({
  runtime: snapshot.runtime,
  filesystems: snapshot.filesystems,
  deadContainers: snapshot.containers.filter(({ state }) => state === "exited").length,
  unmatchedKeepRules: unmatchedKeepRules(
    compileKeepRules(snapshot.keep.rules),
    snapshot.images,
  ).map(({ pattern }) => pattern),
  observedAt: snapshot.observedAt,
});
