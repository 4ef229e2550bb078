/** From observation to plan: observe, remember, decide. Removes nothing; every command uses it. */

import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { Plan } from "../model/plan.ts";
import type { Filesystem, Snapshot } from "../model/snapshot.ts";
import { rememberPods } from "../policy/container/pods.ts";
import { type Decide, decide } from "../policy/decide.ts";
import { FULL_PATIENCE, rememberCreations } from "../policy/image/creations.ts";
import { layersCount } from "../policy/layer/layer-order.ts";
import { rememberOrigins } from "../policy/layer/origins.ts";
import { metTargets } from "../policy/pressure/judge.ts";
import { KNOWN_MAX } from "../policy/space/nothing-freed.ts";
import { look, remembered } from "./detect.ts";
import { readCreations } from "./observe.ts";
import { readOrigins } from "./origins.ts";
import type { ReadEngine } from "./ports.ts";
import type { Steps } from "./steps.ts";
import { withUsedLogs } from "./used-logs.ts";

export interface PrepareRequest extends Pick<
  Decide,
  "purpose" | "parts" | "pressureTargets" | "creationPatience"
> {
  /** For a single pass: eviction thresholds that this observation meets are targets too. */
  readonly evictions?: SinglePassEvictions | undefined;
  /** Whether to read the layers of all images, even if they decide nothing. */
  readonly allLayers?: boolean;
  /** Whether to store what was seen in the ledger; read-only commands do not. */
  readonly remembers: boolean;
}

export interface SinglePassEvictions {
  /** Signals of the soft thresholds that the running agent has found due; `null` without an agent: all count at once. */
  readonly softDue: ReadonlySet<string> | null;
}

export interface Prepared {
  readonly snapshot: Snapshot;
  /** The ledger after the snapshot. */
  readonly ledger: Ledger;
  readonly plan: Plan;
  /** When the snapshot's lists were requested, by the monotonic clock. */
  readonly listedNs: bigint;
  /** What the plan was decided from, for deciding again. */
  readonly decided: Decide;
}

/** Observes the node and decides. Rejects if a list or a stat fails, without a plan. */
export async function prepare(
  engine: ReadEngine,
  request: PrepareRequest,
  run: {
    readonly steps: Steps;
    readonly signal: AbortSignal;
    /** Aborts once a pass under pressure waits for this one, which then continues without layers that it has not read. */
    readonly hurry?: AbortSignal | undefined;
  },
): Promise<Prepared> {
  const { steps, signal, hurry } = run;
  const { purpose, parts, pressureTargets, creationPatience, evictions } = request;
  const logs = parts.containers !== "none";
  const listedNs = engine.timer.monotonicNs();
  const snapshot = await steps.run("observe", () => look(engine, { logs }, signal));
  const ledger = await steps.run("remember", () => rememberNode(engine, snapshot, request));
  const decided: Decide = {
    snapshot,
    ledger,
    limits: engine.limits(),
    purpose,
    parts,
    hold: engine.hold(),
    startedAt: engine.startedAt,
    pressureTargets:
      evictions === undefined
        ? pressureTargets
        : metNow(engine.limits(), snapshot.filesystems, evictions),
    creationPatience,
  };
  const prepared = await steps.run("decide", () => {
    const planned = { snapshot, ledger, plan: decide(decided), decided, listedNs };
    return needsCreations(planned, request) ? withCreations(engine, planned, request) : planned;
  });
  const whole = needsLayers(prepared, request)
    ? await steps.run("layers", () => withLayers(engine, { prepared, request, hurry }, signal))
    : prepared;
  return request.remembers ? whole : await withUsedLogs(engine, whole, signal);
}

/** Only what would be removed can be held up; commands that show a plan show the block in any case. */
const needsCreations = ({ plan: { images } }: Prepared, { remembers }: PrepareRequest): boolean =>
  images !== null && (images.candidates.length > 0 || !remembers);

/** The same plan with the containers that are being created. */
async function withCreations(
  engine: ReadEngine,
  prepared: Prepared,
  { remembers }: PrepareRequest,
): Promise<Prepared> {
  const creations = await readCreations(engine.observe.host, prepared.snapshot);
  const seen = { ...prepared.snapshot, creations };
  const joined = (ledger: Ledger): Ledger => {
    const known = rememberCreations(ledger, { ...seen, now: seen.observedAt }, ledger.watched);
    return known === ledger.creations ? ledger : { ...ledger, creations: known };
  };
  const now = engine.memory.current();
  if (remembers && joined(now) !== now) engine.memory.replace(joined(now));
  if (creations.inProgress.length === 0) return prepared;
  const ledger = joined(prepared.ledger);
  const decided = { ...prepared.decided, snapshot: seen, ledger };
  return { ...prepared, snapshot: seen, ledger, decided, plan: decide(decided) };
}

/**
 * Under pressure no call is made that a removal would have to wait for; if no image may be removed, layers decide
 * nothing.
 */
function needsLayers(prepared: Prepared, request: PrepareRequest): boolean {
  const { images } = prepared.plan;
  const { origins } = prepared.ledger;
  const limits = prepared.decided.limits.images;
  if (limits.compat === "kubelet" || request.purpose.kind === "pressure") return false;
  if (prepared.snapshot.images.every(({ id }) => origins.has(id))) return false;
  if (request.allLayers === true) return true;
  if (images === null || images.candidates.length === 0) return false;
  if (layersCount(limits, request.purpose, images.targets)) return true;
  // They tell removals of shared layers from those that give nothing back.
  return limits.accounting === "measured" && images.candidates.length >= KNOWN_MAX;
}

/** The same plan with the layers of images that detection has not read yet. */
async function withLayers(
  engine: ReadEngine,
  {
    prepared,
    request,
    hurry,
  }: {
    readonly prepared: Prepared;
    readonly request: PrepareRequest;
    readonly hurry: AbortSignal | undefined;
  },
  signal: AbortSignal,
): Promise<Prepared> {
  const { images } = prepared.snapshot;
  const known = prepared.ledger.origins;
  const stop = hurry === undefined ? signal : AbortSignal.any([signal, hurry]);
  const read = await readOrigins(engine.observe.runtime, { images, known }, stop).catch(
    (thrown: unknown) => {
      if (signal.aborted || !stop.aborted) throw thrown;
      return null;
    },
  );
  if (read === null || read.origins.size === 0) return prepared;
  const joined = (ledger: Ledger): Ledger => ({
    ...ledger,
    ...rememberOrigins(ledger, images, read.origins),
  });
  if (request.remembers) engine.memory.replace(joined(engine.memory.current()));
  const ledger = joined(prepared.ledger);
  const decided = { ...prepared.decided, ledger };
  return { ...prepared, ledger, decided, plan: decide(decided) };
}

/** What relieves the eviction thresholds that are met, beside the triggers of a periodic pass. */
const metNow = (
  limits: Limits,
  filesystems: readonly Filesystem[],
  { softDue }: SinglePassEvictions,
): Decide["pressureTargets"] =>
  metTargets({ limits: limits.pressure, compat: limits.images.compat, filesystems }, softDue);

/** The basis of an offline plan: a recorded node instead of an observation. */
export function prepareRecorded(
  recorded: { readonly snapshot: Snapshot; readonly ledger: Ledger },
  input: Omit<Decide, "snapshot" | "ledger" | "creationPatience" | "pressureTargets">,
): Prepared {
  const decided: Decide = {
    ...input,
    ...recorded,
    pressureTargets: metNow(input.limits, recorded.snapshot.filesystems, { softDue: null }),
    creationPatience: FULL_PATIENCE,
  };
  return { ...recorded, plan: decide(decided), decided, listedNs: 0n };
}

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
  const ledger =
    parts.containers === "none" ? seen : { ...seen, pods: rememberPods(before.pods, view) };
  if (remembers) engine.memory.replace(ledger);
  return ledger;
}
