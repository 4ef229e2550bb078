/** From observation to plan: observe, remember, decide. Removes nothing; every command uses it. */

import type { ImageId } from "../model/ids.ts";
import type { ImageConfig, ImageRecord, Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import { instant, totalUptime as totalUptimeOf } from "../model/time.ts";
import type { Facts } from "../policy/facts.ts";
import { compileKeepRules, unmatchedKeepRules } from "../policy/keep/keep.ts";
import { rememberImageConfigs } from "../policy/layers.ts";
import { metTargets } from "../policy/pressure/thresholds.ts";
import { ageNow, forgetUnlisted, seeImages } from "../policy/remember.ts";
import { askAll } from "./calls.ts";
import { Observer, readPodDirectories } from "./observe.ts";
import type { ReadEngine, Seen } from "./ports.ts";

export interface PrepareRequest extends Pick<Facts, "purpose" | "parts" | "pressureTargets"> {
  /** Absent: no disk is paused. */
  readonly paused?: Facts["paused"];
  /** For a single pass: eviction thresholds that this observation meets are targets too. */
  readonly evictions?: boolean | undefined;
  /** Whether to read the layers of all images, even if they decide nothing. */
  readonly allLayers?: boolean;
  /** Whether to store what was seen in the ledger; what is only shown is not stored. */
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
  const { purpose, parts, paused = new Map(), evictions, pressureTargets, remembers } = request;
  const { observe, memory, policy, timer } = engine;
  const listedNs = timer.monotonicNs();
  const logs = parts.containers !== "none";
  let snapshot = await observer.observe({ ledger: memory.current(), logs }, signal);
  // A plan that is shown names the pods that are starting; a pass looks for them before each removal.
  if (!remembers && parts.images) snapshot = await readPodDirectories(observe.host, snapshot);
  engine.stepDone?.();
  const ledger = rememberNode(engine, snapshot, request);
  const limits = engine.limits();
  const met = { limits: limits.pressure, filesystems: snapshot.filesystems };
  const facts: Facts = {
    snapshot,
    ledger,
    limits,
    purpose,
    parts,
    hold: engine.hold(),
    pressureTargets: evictions === true ? metTargets(met) : pressureTargets,
    paused,
    last: engine.passes.last(),
  };
  const prepared = { ...facts, plan: policy.decide(facts), listedNs };
  engine.stepDone?.();
  if (!policy.knowsLayers || !needsLayers(prepared, request)) return prepared;
  return withLayers(engine, { prepared, request }, signal);
}

/** The plan by what was learned since it was made. */
const decidedAgain = <Of extends Facts>({ policy }: Pick<ReadEngine, "policy">, facts: Of): Of => ({
  ...facts,
  plan: policy.decide(facts),
});

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

/** An observer whose lists of images drop the records of those that they lack. */
export const observerOf = (engine: ReadEngine): Observer =>
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
  const { memory } = engine;
  const request = { ledger: memory.current(), logs: false };
  const snapshot = await observerOf(engine).observe(request, signal);
  rememberNode(engine, snapshot, { parts: { containers: "none", images: true }, remembers: true });
  memory.save();
  return seenOf(snapshot);
}

// Layers

/** Reads the layers of new images between passes, so that no removal waits for them. */
export async function readLayers(
  { policy, memory, observe }: Pick<ReadEngine, "policy" | "memory" | "observe">,
  signal: AbortSignal,
): Promise<void> {
  if (!policy.knowsLayers) return;
  const imagesOf = ({ images }: Ledger) => Array.from(images.keys(), (id) => ({ id }));
  const before = memory.current();
  const unknown = imagesOf(before).filter(({ id }) => !before.imageConfigs.has(id));
  const read = await readImageConfigs(observe.runtime, unknown, signal);
  const now = memory.current();
  if (read.size > 0) memory.replace({ ...now, ...rememberImageConfigs(now, imagesOf(now), read) });
}

/**
 * Under pressure no call is made that a removal would have to wait for; if no image may be removed, layers decide
 * nothing.
 */
function needsLayers({ plan, ledger, snapshot }: Prepared, request: PrepareRequest): boolean {
  if (request.purpose.kind === "pressure") return false;
  if (snapshot.images.every(({ id }) => ledger.imageConfigs.has(id))) return false;
  // Build dates come with them, which decide the order of images of equal age; one that is removed by hand has none.
  const isByHand = request.remembers && request.purpose.kind === "all-unused";
  return request.allLayers === true || (plan.images?.candidates.length ?? 0) > Number(isByHand);
}

/** The same plan with the layers of images that were not read yet. */
async function withLayers(
  engine: ReadEngine,
  { prepared, request }: { readonly prepared: Prepared; readonly request: PrepareRequest },
  signal: AbortSignal,
): Promise<Prepared> {
  const { images } = prepared.snapshot;
  const unknown = images.filter(({ id }) => !prepared.ledger.imageConfigs.has(id));
  const read = await readImageConfigs(engine.observe.runtime, unknown, signal);
  if (read.size === 0) return prepared;
  const learn = (ledger: Ledger): Ledger => ({
    ...ledger,
    ...rememberImageConfigs(ledger, images, read),
  });
  if (request.remembers) engine.memory.replace(learn(engine.memory.current()));
  return decidedAgain(engine, { ...prepared, ledger: learn(prepared.ledger) });
}

/** Layers and build date of these images. If a call fails, that image stays unknown until the next look. */
async function readImageConfigs(
  runtime: Pick<RuntimeReader, "imageConfig">,
  images: readonly Pick<Image, "id">[],
  signal: AbortSignal,
): Promise<ReadonlyMap<ImageId, ImageConfig>> {
  const imageConfigs = new Map<ImageId, ImageConfig>();
  await askAll(
    [...new Set(images.map(({ id }) => id))],
    async (id) => {
      const config = await runtime.imageConfig(id, signal);
      if (config !== null) imageConfigs.set(id, config);
    },
    (_, thrown) => {
      if (signal.aborted) throw thrown;
    },
  );
  return imageConfigs;
}

// Read-only commands

export type ReadOnlyPass = Pick<PrepareRequest, "purpose" | "parts" | "allLayers" | "evictions">;

/** What `gc` would plan now. The observation counts as its pass would, but nothing is stored. */
export const readOnlyPass = (
  engine: ReadEngine,
  pass: ReadOnlyPass,
  signal: AbortSignal,
): Promise<Prepared> =>
  prepare(
    engine,
    { ...pass, pressureTargets: [], remembers: false },
    { observer: new Observer(engine.observe), signal },
  );

/** The plan as if every image had reached the minimum age: what a new ledger waits for. */
export function asIfOldEnough(engine: ReadEngine, prepared: Prepared): Prepared {
  const { minimumAge } = prepared.limits.images;
  const old = (record: ImageRecord): ImageRecord => ({
    ...record,
    firstSeenAt: instant(record.firstSeenAt - minimumAge),
    firstSeenUptime: totalUptimeOf(record.firstSeenUptime - minimumAge),
  });
  const images = new Map([...prepared.ledger.images].map(([id, record]) => [id, old(record)]));
  return decidedAgain(engine, { ...prepared, ledger: { ...prepared.ledger, images } });
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
