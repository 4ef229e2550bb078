/** From observation to plan: observe, remember, decide. Removes nothing; every command uses it. */

import type { ImageId } from "../model/ids.ts";
import type { ImageConfig, Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { Seen } from "../model/reports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { duration } from "../model/time.ts";
import type { Facts } from "../policy/facts.ts";
import { compileKeepRules, unmatchedKeepRules } from "../policy/keep/keep.ts";
import { rememberImageConfigs } from "../policy/layers.ts";
import { metTargets } from "../policy/pressure/thresholds.ts";
import { ageNow, forgetUnlisted, seeImages } from "../policy/remember.ts";
import { isByName } from "../policy/selection.ts";
import { askAll } from "./calls.ts";
import { Observer, readPodDirectories } from "./observe.ts";
import type { ReadEngine } from "./ports.ts";

export interface PrepareRequest {
  readonly purpose: Facts["purpose"];
  readonly parts: Facts["parts"];
  /** `null`: those of the eviction thresholds that this observation meets, a soft one at once. */
  readonly pressureTargets: Facts["pressureTargets"] | null;
  readonly paused: Facts["paused"];
  /** Whether to read the layers of all images, even if they decide nothing. */
  readonly allLayers?: boolean;
  /** Whether to store what was seen in the ledger; what is only shown is not stored. */
  readonly remembers: boolean;
}

/** A plan and what it was decided from. */
export interface Prepared extends Facts {
  readonly plan: Plan;
}

/** What a pass goes on with. */
export interface Begun extends Prepared {
  /** Made the snapshot. */
  readonly observer: Observer;
  /** When the snapshot's lists were requested, by the monotonic clock. */
  readonly listedNs: bigint;
}

/** Observes the node and decides. Rejects if a list or a stat fails, without a plan. */
export async function prepare(
  engine: ReadEngine,
  request: PrepareRequest,
  signal: AbortSignal,
): Promise<Begun> {
  const { purpose, parts, paused, remembers } = request;
  const { observe, memory, policy, timer } = engine;
  const observer = remembers ? rememberingObserver(engine) : new Observer(observe);
  const listedNs = timer.monotonicNs();
  const logs = parts.containers !== "none";
  let snapshot = await observer.observe({ ledger: memory.current(), logs }, signal);
  // A plan that is shown names the pods that are starting; a pass looks for them before each removal.
  if (!remembers && parts.images) snapshot = await readPodDirectories(observe.host, snapshot);
  engine.stepDone?.();
  const limits = engine.limits();
  // From the newest ledger, so that nothing that another loop recorded is lost.
  const seen = { ledger: memory.current(), snapshot, limits: limits.ledger, parts };
  const ledger = policy.remember(seen);
  if (remembers) memory.replace(ledger);
  const { filesystems } = snapshot;
  const facts: Facts = {
    snapshot,
    ledger,
    limits,
    purpose,
    parts,
    hold: engine.hold(),
    pressureTargets:
      request.pressureTargets ?? metTargets({ limits: limits.pressure, filesystems }),
    paused,
    last: engine.passes.last(),
  };
  const plan = policy.decide(facts);
  engine.stepDone?.();
  const learn = needsLayers(facts, plan, request) ? await readLayers(engine, ledger, signal) : null;
  if (learn === null) return { ...facts, plan, observer, listedNs };
  if (remembers) memory.replace(learn(memory.current()));
  const learned = { ...facts, ledger: learn(ledger) };
  return { ...learned, plan: policy.decide(learned), observer, listedNs };
}

/** An observer whose lists of images drop the records of those that they lack. */
const rememberingObserver = (engine: ReadEngine): Observer =>
  new Observer(engine.observe, (listed) => seeListed(engine, listed));

/**
 * Every list of images counts: one that it lacks is gone, though it may come back before the next observation, and one that
 * was not known is first seen now.
 */
export function seeListed(
  { memory, observe }: Pick<ReadEngine, "memory" | "observe">,
  listed: Snapshot["images"],
): void {
  const { wall, ...clocks } = observe.host.clocks();
  const before = memory.current();
  const at = { wall, totalUptime: ageNow(before, clocks) };
  const after = seeImages(forgetUnlisted(before, listed), listed, at);
  if (after !== before) memory.replace(after);
}

/** Detection: one observation, recorded in the ledger, without deciding or removing anything. */
export async function detect(engine: ReadEngine, signal: AbortSignal): Promise<Seen> {
  const { memory, policy } = engine;
  const request = { ledger: memory.current(), logs: false };
  const snapshot = await rememberingObserver(engine).observe(request, signal);
  const parts = { containers: "none", images: true } as const;
  const limits = engine.limits().ledger;
  memory.replace(policy.remember({ ledger: memory.current(), snapshot, limits, parts }));
  memory.save();
  return seenOf(snapshot);
}

// Layers

/** Reads the layers of new images between passes, so that no removal waits for them. */
export async function learnLayers(engine: ReadEngine, signal: AbortSignal): Promise<void> {
  const { memory } = engine;
  const learn = await readLayers(engine, memory.current(), signal);
  if (learn !== null) memory.replace(learn(memory.current()));
}

/**
 * Under pressure no call is made that a removal would have to wait for; if no image may be removed, layers and build dates
 * decide nothing, nor for a single image that is named.
 */
const needsLayers = (
  { purpose }: Facts,
  { images }: Plan,
  { allLayers }: PrepareRequest,
): boolean =>
  purpose.kind !== "pressure" &&
  (allLayers === true || (images?.candidates.length ?? 0) > Number(isByName(purpose)));

/**
 * Reads layers and build date of every image of which the ledger lacks them, and returns what adds them to a ledger;
 * `null`: nothing was read. If a call fails, that image stays unknown until the next look.
 */
async function readLayers(
  { policy, observe }: ReadEngine,
  { images, imageConfigs }: Ledger,
  signal: AbortSignal,
): Promise<((ledger: Ledger) => Ledger) | null> {
  if (!policy.knowsLayers) return null;
  const read = new Map<ImageId, ImageConfig>();
  const unknown = [...images.keys()].filter((id) => !imageConfigs.has(id));
  const ask = async (id: ImageId): Promise<void> => {
    const config = await observe.runtime.imageConfig(id, signal);
    if (config !== null) read.set(id, config);
  };
  await askAll(unknown, { signal, ask });
  if (read.size === 0) return null;
  return (ledger) => ({ ...ledger, ...rememberImageConfigs(ledger, ledger.images.keys(), read) });
}

/** The plan as if every image had reached the minimum age: what a new ledger waits for. */
export function asIfOldEnough({ policy }: ReadEngine, prepared: Prepared): Prepared {
  const images = { ...prepared.limits.images, minimumAge: duration(0n) };
  const facts = { ...prepared, limits: { ...prepared.limits, images } };
  return { ...facts, plan: policy.decide(facts) };
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
