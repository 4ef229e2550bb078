/** Executes a plan with the engine's ports, and records the outcome in the ledger. */

import type { PassId } from "../model/ids.ts";
import type { Limits } from "../model/limits.ts";
import { type ContainerOutcome, type ImageOutcome, isGone } from "../model/outcome.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { Filesystem, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { decideOnFreshLists } from "../policy/decide.ts";
import { rememberGain } from "../policy/layer/gain.ts";
import { forgetRemoved } from "../policy/remember.ts";
import { rememberNothingFreed } from "../policy/space/nothing-freed.ts";
import { storeFilesystem } from "../policy/space/targets.ts";
import { collectContainers } from "./container/containers.ts";
import { freshLists } from "./fresh-lists.ts";
import type { ImageExecution } from "./image/image-execution.ts";
import { executeImages } from "./image/images.ts";
import type { Meter } from "./image/meter.ts";
import { isCounted } from "./pace.ts";
import type { Engine } from "./ports.ts";
import type { Prepared } from "./prepare.ts";

export interface ExecuteRun extends Pick<ImageExecution, "waiting" | "creations"> {
  readonly id: PassId;
  readonly now: () => Instant;
  readonly signal: AbortSignal;
  readonly starting?: ((candidate: ImageCandidate, meter: Meter) => void) | undefined;
  /** Called after each container, sandbox and log. */
  readonly containerDone?: () => void;
}

export async function executeContainerPlan(
  engine: Engine,
  prepared: Prepared,
  run: ExecuteRun,
): Promise<ContainerOutcome> {
  const plan = prepared.plan.containers;
  if (plan === null) throw new Error("a container plan is executed only where there is one");
  const { images, containers } = prepared.decided.limits;
  const place = containerFilesystem(prepared.snapshot);
  const outcome = await collectContainers(
    plan,
    {
      ...engine,
      runtime: engine.observe.runtime,
      logs: prepared.snapshot.logs === null ? null : engine.remover,
      measureAvailable:
        place === null
          ? null
          : async () => (await engine.observe.disk.measure(place.path)).availableBytes,
    },
    {
      signal: run.signal,
      held: () => engine.hold().kind !== "none",
      decideAgain: (lists) =>
        decideOnFreshLists(
          { ...prepared.decided, hold: engine.hold() },
          { ...lists, listedAt: run.now() },
        ),
      stopGraceMax: containers.stopGraceMax,
      inOrder: containers.compat === "kubelet",
      listedNs: prepared.listedNs,
      maximumRemovals: images.maximumRemovals,
      removalInterval: images.removalInterval,
      done: (item) => {
        run.containerDone?.();
        engine.journal.containerDone(run.id, item);
      },
    },
  );
  const containersGone = outcome.containers
    .filter(isGone)
    .map(({ planned }) => planned.container.id);
  const sandboxesGone = outcome.sandboxes.filter(isGone).map(({ sandbox }) => sandbox.id);
  if (containersGone.length + sandboxesGone.length > 0)
    engine.memory.replace(
      forgetRemoved(engine.memory.current(), {
        containers: containersGone,
        sandboxes: sandboxesGone,
        remaining: prepared.snapshot.containers.length - containersGone.length,
      }),
    );
  return outcome;
}

export async function executeImagePlan(
  engine: Engine,
  prepared: Prepared,
  run: ExecuteRun & {
    /** The outcome for containers in the same pass: their removals count towards the same limit. */
    readonly before: ContainerOutcome | null;
  },
): Promise<ImageOutcome> {
  const plan = prepared.plan.images;
  if (plan === null) throw new Error("an image plan is executed only where there is one");
  const { snapshot, decided } = prepared;
  const listening = new AbortController();
  const events = engine.events.listen(listening.signal);
  const lists = freshLists({
    observe: engine.observe,
    events,
    timer: engine.timer,
    first: snapshot,
    say: (message) => engine.journal.say(1, message),
  });
  const execution: ImageExecution = {
    ...engine,
    ...engine.observe,
    ...run,
    plan,
    facts: { ...decided, limits: limitsAfter(decided.limits, run.before) },
    lists: (stop, sinceNs) => run.waiting("lists", () => lists(stop, sinceNs)),
    done: (item) => engine.journal.imageDone(run.id, item),
  };
  const { outcome, freed } = await executeImages(execution, run.signal).finally(() =>
    listening.abort(),
  );
  if (outcome.items.length > 0) {
    const { imageGcPeriod } = decided.limits.memory;
    const { runtime } = snapshot;
    const learned = rememberGain(engine.memory.current(), { runtime, items: outcome.items });
    engine.memory.replace(rememberNothingFreed(learned, freed, imageGcPeriod));
  }
  return outcome;
}

/** Whether anything was removed, or at least tried. */
export const collected = (outcome: ContainerOutcome | null): boolean =>
  outcome !== null &&
  [...outcome.containers, ...outcome.sandboxes].some((item) => item.result.kind !== "skipped");

/** What both parts of a pass freed side by side cannot be told apart: it counts once, for the images. */
export const withoutImageGain = (
  containers: ContainerOutcome | null,
  images: ImageOutcome | null,
): ContainerOutcome | null =>
  containers === null || (images?.measuredFreedBytes ?? 0n) === 0n
    ? containers
    : { ...containers, measuredFreedBytes: null };

/** The limit of removals per pass, less what was removed before. */
function limitsAfter(limits: Limits, before: ContainerOutcome | null): Limits {
  const { maximumRemovals } = limits.images;
  if (maximumRemovals === null || before === null) return limits;
  const counted = [
    ...before.containers,
    ...before.sandboxes,
    ...before.logs.filter(({ kind }) => kind === "pod-logs"),
  ].filter(({ result }) => isCounted(result)).length;
  const left = Math.max(0, maximumRemovals - counted);
  return { ...limits, images: { ...limits.images, maximumRemovals: left } };
}

const containerFilesystem = (snapshot: Snapshot): Filesystem | null =>
  snapshot.filesystems.find(({ roles }) => roles.includes("containerfs")) ??
  storeFilesystem(snapshot);
