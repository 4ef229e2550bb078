/** Executes a plan with the engine, and records the outcome in the ledger. */

import type { PassId } from "../model/ids.ts";
import type { Limits } from "../model/limits.ts";
import {
  type ContainerOutcome,
  type ImageItem,
  type ImageOutcome,
  isGone,
} from "../model/outcome.ts";
import type { ContainerPlan, ImageCandidate, ImageTarget, Plan } from "../model/plan.ts";
import type { Filesystem, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { unjudged } from "../policy/container/containers.ts";
import { decideOnFreshLists } from "../policy/decide.ts";
import { rememberGain } from "../policy/layer/gain.ts";
import { forgetRemoved } from "../policy/remember.ts";
import { rememberNothingFreed } from "../policy/space/nothing-freed.ts";
import { storeFilesystem } from "../policy/space/targets.ts";
import type { CreationWait } from "./creation-wait.ts";
import { freshNode } from "./fresh-view.ts";
import type { Meter } from "./meter.ts";
import type { Observer } from "./observe.ts";
import { isCounted } from "./pace.ts";
import type { Engine } from "./ports.ts";
import type { Prepared } from "./prepare.ts";
import { removeContainers } from "./remove-containers.ts";
import { removeImages } from "./remove-images.ts";
import type { Steps } from "./steps.ts";

export interface ExecuteRun {
  readonly id: PassId;
  readonly now: () => Instant;
  readonly signal: AbortSignal;
  readonly steps: Steps;
  readonly observer: Observer;
}

export async function collectContainers(
  engine: Engine,
  prepared: Prepared,
  /** `containerDone`: called after each container, sandbox and log. */
  run: ExecuteRun & { readonly containerDone: () => void },
): Promise<ContainerOutcome> {
  const plan = prepared.plan.containers;
  if (plan === null) throw new Error("a container plan is executed only where there is one");
  const { images, containers } = prepared.decided.limits;
  const place = containerFilesystem(prepared.snapshot);
  const outcome = await removeContainers(
    plan,
    {
      ...engine,
      runtime: engine.observe.runtime,
      lists: run.observer.pods,
      say: (message) => engine.journal.say(1, message),
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
        run.containerDone();
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

export async function collectImages(
  engine: Engine,
  prepared: Prepared,
  run: ExecuteRun & {
    readonly creations: CreationWait;
    readonly starting: ((candidate: ImageCandidate, meter: Meter) => void) | undefined;
    readonly retarget: (() => Promise<readonly ImageTarget[]>) | undefined;
    /** The outcome for containers in the same pass: their removals count towards the same limit. */
    readonly before: ContainerOutcome | null;
  },
): Promise<ImageOutcome> {
  const plan = prepared.plan.images;
  if (plan === null) throw new Error("an image plan is executed only where there is one");
  const { snapshot, decided } = prepared;
  const listening = new AbortController();
  const events = engine.events.listen(listening.signal);
  const { observer, creations, steps } = run;
  const node = freshNode({ engine, observer, events, creations, steps, first: snapshot });
  const execution = {
    ...engine,
    ...engine.observe,
    ...run,
    plan,
    facts: { ...decided, limits: limitsAfter(decided.limits, run.before) },
    look: (stop: AbortSignal) => node.get(stop),
    done: (item: ImageItem) => engine.journal.imageDone(run.id, item),
  };
  const { outcome, freed } = await removeImages(execution, run.signal).finally(() =>
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
export const hasTried = (outcome: ContainerOutcome | null): boolean =>
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

export const dryContainers = (plan: ContainerPlan): ContainerOutcome => ({
  ...STOPPED_CONTAINERS,
  end: "dry-run",
  errors: unjudged(plan),
});

export const STOPPED_CONTAINERS: ContainerOutcome = {
  end: "stopped",
  containers: [],
  sandboxes: [],
  logs: [],
  measuredFreedBytes: null,
  errors: [],
};

export function dryImages(plan: Plan): ImageOutcome {
  const wanted = (plan.images?.targets ?? []).flatMap((target) =>
    "wantedBytes" in target ? [target.wantedBytes] : [],
  );
  const [usage] = plan.images?.usage ?? [];
  const available = usage?.filesystem.availableBytes ?? null;
  return {
    end: "dry-run",
    items: [],
    wantedBytes: wanted[0] ?? null,
    reportedFreedBytes: 0n,
    measuredFreedBytes: 0n,
    availableBefore: available,
    availableAfter: available,
    capacityBytes: usage?.filesystem.capacityBytes ?? null,
    error: null,
    ghosts: [],
  };
}
