/** Executes a plan with the engine, and records the outcome in the ledger. */

import type { PassId } from "../model/ids.ts";
import {
  type ContainerOutcome,
  type ImageEnd,
  type ImageItem,
  type ImageOutcome,
  isGone,
} from "../model/pass.ts";
import type { ContainerPlan, ImagePlan, ImageTarget, Plan } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { unjudged } from "../policy/container/containers.ts";
import { containerPlan } from "../policy/decide.ts";
import { forgetRemoved } from "../policy/remember.ts";
import { storeFilesystem } from "../policy/space/disk.ts";
import { rememberGain, rememberNothingFreed } from "../policy/space/freed.ts";
import { hurried } from "./calls.ts";
import type { CreationWait } from "./creation-wait.ts";
import { freshNode } from "./fresh-view.ts";
import type { Observer } from "./observe.ts";
import type { Engine } from "./ports.ts";
import type { Prepared } from "./prepare.ts";
import { removeContainers } from "./remove-containers.ts";
import { removeImages } from "./remove-images.ts";
import type { Steps } from "./steps.ts";

/** What the steps of one pass share. */
export interface PassContext {
  readonly id: PassId;
  readonly steps: Steps;
  readonly observer: Observer;
  readonly creations: CreationWait;
  /** Called before each image removal. */
  readonly starting?: (() => void) | undefined;
  /** For a pass under pressure: the targets as the disks are now; none ends the pass. */
  readonly retarget?: (() => Promise<readonly ImageTarget[]>) | undefined;
}

export async function collectContainers(
  engine: Engine,
  prepared: Prepared,
  run: PassContext & { readonly signal: AbortSignal; readonly done: () => void },
): Promise<ContainerOutcome> {
  const { snapshot, limits, listedNs } = prepared;
  const { containers: plan } = prepared.plan;
  if (plan === null) throw new Error("a container plan is executed only where there is one");
  const path = containerPath(snapshot);
  engine.backoff.observed(snapshot.runtime.instance);
  const outcome = await removeContainers({
    ...engine,
    plan,
    runtime: engine.observe.runtime,
    writer: hurried(engine.writer, engine.timer, run.signal),
    logs: snapshot.logs === null ? null : engine.remover,
    lists: run.observer.pods,
    listedNs,
    decideAgain: async (lists) => {
      const pods = await engine.observe.host.pods(run.signal, snapshot.pods);
      const now = { ...prepared, snapshot: { ...snapshot, pods }, hold: engine.hold() };
      return containerPlan(now, lists);
    },
    held: () => engine.hold().kind !== "none",
    measureAvailable:
      path === null ? null : async () => (await engine.observe.disk.measure(path)).availableBytes,
    inOrder: limits.containers.compat === "kubelet",
    signal: run.signal,
    say: (message) => engine.journal.say(1, message),
    done: (item) => {
      run.done();
      engine.journal.containerDone(run.id, item);
    },
  });
  const gone = {
    containers: outcome.containers.filter(isGone).map(({ planned }) => planned.container.id),
    sandboxes: outcome.sandboxes.filter(isGone).map(({ sandbox }) => sandbox.id),
  };
  const remaining = snapshot.containers.length - gone.containers.length;
  if (gone.containers.length + gone.sandboxes.length > 0)
    engine.memory.replace(forgetRemoved(engine.memory.current(), { ...gone, remaining }));
  return outcome;
}

export async function collectImages(
  engine: Engine,
  prepared: Prepared,
  run: PassContext & {
    readonly signal: AbortSignal;
  },
): Promise<ImageOutcome> {
  const { snapshot, limits } = prepared;
  const { images: plan } = prepared.plan;
  if (plan === null) throw new Error("an image plan is executed only where there is one");
  const node = freshNode({ ...run, engine, first: snapshot });
  const { outcome: removed, freed } = await removeImages({
    ...engine,
    ...engine.observe,
    ...run,
    plan,
    facts: prepared,
    now: () => run.steps.now(),
    look: () => node.get(run.signal),
    done: (item: ImageItem) => {
      engine.journal.imageDone(run.id, item);
    },
  });
  const outcome = { ...removed, end: endOf(plan, removed.end) };
  if (outcome.items.length > 0) {
    const { imageGcPeriod } = limits.memory;
    const { runtime } = snapshot;
    const learned = rememberGain(engine.memory.current(), { runtime, items: outcome.items });
    engine.memory.replace(rememberNothingFreed(learned, freed, imageGcPeriod));
  }
  return outcome;
}

const REACHED: readonly ImageEnd[] = ["nothing-to-do", "target-reached", "own-gain-reached"];

/** A disk without a target stays above its threshold although all else is reached; under pressure, the next pass says it. */
function endOf({ purpose, notes }: ImagePlan, end: ImageEnd): ImageEnd {
  const left = notes.find((note) => note.kind === "out-of-reach");
  return left !== undefined && purpose !== "pressure" && REACHED.includes(end)
    ? left.block.kind
    : end;
}

/** Whether anything was removed, or at least tried. */
export const hasTried = (outcome: ContainerOutcome | null): boolean =>
  outcome !== null &&
  [...outcome.containers, ...outcome.sandboxes].some((item) => item.result.kind !== "skipped");

/** How long containers go on beside a disk that still needs images: removed containers leave images unused, and what held them up may have ended. */
const RETRY_MS = 30_000;

/** Whether another pass could remove images: this one removed none, stopped because the disks needed no more, or ended long ago. */
export const nextMayRemove = (images: ImageOutcome | null, msSince: number): boolean =>
  images === null ||
  images.end === "target-reached" ||
  images.end === "own-gain-reached" ||
  msSince >= RETRY_MS;

/** What both parts of a pass freed side by side cannot be told apart: it counts once, for the images. */
export const withoutImageGain = (
  containers: ContainerOutcome | null,
  images: ImageOutcome | null,
): ContainerOutcome | null =>
  containers === null || (images?.measuredFreedBytes ?? 0n) === 0n
    ? containers
    : { ...containers, measuredFreedBytes: null };

const containerPath = (snapshot: Snapshot): string | null =>
  snapshot.filesystems.find(({ roles }) => roles.includes("containerfs"))?.path ??
  storeFilesystem(snapshot)?.path ??
  null;

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
