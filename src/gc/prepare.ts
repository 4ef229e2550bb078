/** From observation to plan: observe, remember, decide. Removes nothing; every command uses it. */

import type { Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { ageNow } from "../policy/age-clock.ts";
import type { Facts } from "../policy/facts.ts";
import { compileKeepRules, unmatchedKeepRules } from "../policy/keep/keep.ts";
import { rememberOrigins } from "../policy/origins.ts";
import { metTargets } from "../policy/pressure/thresholds.ts";
import { forgetRemoved, forgetUnlisted, seeImages } from "../policy/remember.ts";
import { readOrigins } from "./details.ts";
import { Observer, readPodDirectories } from "./observe.ts";
import type { ReadEngine, Seen } from "./ports.ts";

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
  readonly signal: AbortSignal;
}

/** Observes the node and decides. Rejects if a list or a stat fails, without a plan. */
export async function prepare(
  engine: ReadEngine,
  request: PrepareRequest,
  run: PrepareRun,
): Promise<Prepared> {
  const { observer, signal } = run;
  const { purpose, parts, awaited, paused, evictions } = request;
  const listedNs = engine.timer.monotonicNs();
  const snapshot = await look(engine, { observer, logs: parts.containers !== "none" }, signal);
  engine.stepDone?.();
  forgetGoing(engine, observer);
  const ledger = rememberNode(engine, snapshot, request);
  const limits = engine.limits();
  const facts: Facts = {
    snapshot,
    ledger,
    limits,
    purpose,
    parts,
    hold: engine.hold(),
    pressureTargets:
      evictions === true
        ? metTargets({ limits: limits.pressure, filesystems: snapshot.filesystems })
        : request.pressureTargets,
    awaited,
    paused,
    last: engine.passes.last(),
  };
  const plan = engine.policy.decide(facts);
  const prepared = await withStarting(engine, { ...facts, plan, listedNs }, request);
  engine.stepDone?.();
  if (!engine.policy.knowsLayers || !needsLayers(prepared, request)) return prepared;
  return withLayers(engine, { prepared, request }, run);
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
  return decidedAgain(engine, { ...prepared, snapshot });
}

/** The plan by what was learned since it was made. */
export const decidedAgain = <Of extends Facts>(
  { policy }: Pick<ReadEngine, "policy">,
  facts: Of,
): Of => ({ ...facts, plan: policy.decide(facts) });

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
  if (request.purpose.kind === "pressure") return false;
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
  return decidedAgain(engine, { ...prepared, ledger: learn(prepared.ledger) });
}

/** Under pressure the pass removes containers meanwhile; these have not vanished. */
function forgetGoing({ memory }: ReadEngine, { pods: { removed } }: Observer): void {
  if (removed.size === 0) return;
  const before = memory.current();
  const remaining = [...before.containers.keys()].filter((id) => !removed.has(id)).length;
  memory.replace(forgetRemoved(before, { containers: [...removed], sandboxes: [], remaining }));
}

/** Starts from the newest ledger and stores the result at once, so that nothing recorded by another loop is lost. */
function rememberNode(
  { memory, policy, limits }: ReadEngine,
  snapshot: Snapshot,
  { parts, remembers }: Pick<PrepareRequest, "parts" | "remembers">,
): Ledger {
  const seen = { ledger: memory.current(), snapshot, limits: limits().ledger, parts };
  const ledger = policy.remember(seen);
  if (remembers) memory.replace(ledger);
  return ledger;
}

/** Detection: one observation, recorded in the ledger, without deciding or removing anything. */
export async function detect(engine: ReadEngine, signal: AbortSignal): Promise<Seen> {
  const observer = observerOf(engine);
  const snapshot = await look(engine, { observer, logs: false }, signal);
  rememberNode(engine, snapshot, { parts: IMAGES_ONLY, remembers: true });
  engine.memory.save();
  return seenOf(snapshot);
}

const IMAGES_ONLY: Facts["parts"] = { containers: "none", images: true };

/** An observer whose lists of images drop the records of those that they lack. */
export const observerOf = (engine: ReadEngine): Observer =>
  new Observer(engine.observe, (listed) => seeListed(engine, listed));

/**
 * Every list of images counts: one that it lacks is gone, though it may come back before the next observation, and one that
 * was not known is first seen now.
 */
export function seeListed(
  engine: Pick<ReadEngine, "memory" | "observe">,
  listed: Snapshot["images"],
): void {
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
