/** Hands a plan to execution with the ports of the engine, and takes what came of it into the memory. */

import { collectContainers } from "../execute/containers.ts";
import type { ImageExecution } from "../execute/image-execution.ts";
import { executeImages } from "../execute/images.ts";
import type { Meter } from "../execute/meter.ts";
import { isUnanswered } from "../execute/stall.ts";
import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, PassId } from "../model/ids.ts";
import type { Ledger, ReleaseRecord } from "../model/ledger.ts";
import type { ImageLimits } from "../model/limits.ts";
import type { ContainerOutcome, ImageOutcome } from "../model/outcome.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { Filesystem, RuntimeInfo, Snapshot } from "../model/snapshot.ts";
import type { Duration, Instant } from "../model/time.ts";
import { decideOnFreshLists, listSource } from "../policy/decide.ts";
import type { JudgeImages } from "../policy/judge.ts";
import { recheckImage } from "../policy/recheck.ts";
import { noRelease } from "../policy/release.ts";
import { expectContainers, forgetImages, recallImage, rememberGhost } from "../policy/remember.ts";
import { makeLook } from "./look.ts";
import type { Engine } from "./ports.ts";
import type { Prepared } from "./prepare.ts";
import { usefulness } from "./usefulness.ts";

export interface ExecuteRun {
  readonly id: PassId;
  readonly now: () => Instant;
  readonly signal: AbortSignal;
  readonly starting?: ((candidate: ImageCandidate, meter: Meter) => void) | undefined;
}

export async function executeContainerPlan(
  engine: Engine,
  prepared: Prepared,
  run: ExecuteRun,
): Promise<ContainerOutcome> {
  const plan = prepared.plan.containers;
  if (plan === null) throw new Error("a container plan is executed only where there is one");
  const { images } = prepared.decided.limits;
  const place = storePlace(prepared.snapshot, "containerfs");
  const outcome = await collectContainers(
    plan,
    {
      runtime: engine.observe.runtime,
      writer: engine.writer,
      logs: prepared.snapshot.logs === null ? null : engine.remover,
      logUsers: engine.logUsers,
      hooks: engine.hooks,
      timer: engine.timer,
      measureAvailable:
        place === null
          ? null
          : async () => (await engine.observe.disk.measure(place.path)).availableBytes,
    },
    {
      signal: run.signal,
      decideAgain: (lists) =>
        decideOnFreshLists({ ...prepared.decided, hold: engine.hold() }, lists),
      maximumRemovals: images.maximumRemovals,
      removalInterval: images.removalInterval,
      done: (item) => engine.journal.containerDone(run.id, item),
    },
  );
  const removed = outcome.containers.filter((item) => item.result.kind === "removed").length;
  if (removed > 0) {
    const left = prepared.snapshot.containers.length - removed;
    engine.memory.replace(expectContainers(engine.memory.current(), left));
  }
  return outcome;
}

export async function executeImagePlan(
  engine: Engine,
  prepared: Prepared,
  run: ExecuteRun & {
    /** What came of the containers of the same pass: their removals count towards the same limit. */
    readonly before: ContainerOutcome | null;
  },
): Promise<ImageOutcome> {
  const plan = prepared.plan.images;
  if (plan === null) throw new Error("an image plan is executed only where there is one");
  const { snapshot, ledger } = prepared;
  const limits = limitsAfter(prepared.decided.limits.images, run.before);
  const place = storePlace(snapshot, "imagefs");
  const runtimeKey = releaseKey(snapshot.runtime);
  const listening = new AbortController();
  const events = engine.events.listen(listening.signal);
  const execution: ImageExecution = {
    plan,
    limits,
    store:
      place === null
        ? null
        : { device: place.device, path: place.path, usedBytes: place.imageUsedBytes },
    severalStores: snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs")).length > 1,
    waitedForPods: prepared.decided.waitedForPods,
    imageCount: new Set(snapshot.images.map(({ id }) => id)).size,
    runtimeInfo: snapshot.runtime,
    release: ledger.releases.get(runtimeKey) ?? noRelease,
    runtime: engine.observe.runtime,
    writer: forgetting(engine),
    disk: engine.observe.disk,
    timer: engine.timer,
    now: run.now,
    look: makeLook({ observe: engine.observe, events, timer: engine.timer, first: snapshot }),
    reconsider: (candidate, fresh, waited) =>
      recheckImage(candidate, judgeInput(engine, { prepared, fresh, waited })) ??
      returned(engine, { prepared, candidate }),
    stillUseful: usefulness(prepared),
    done: (item) => engine.journal.imageDone(run.id, item),
    ...(run.starting === undefined ? {} : { starting: run.starting }),
  };
  const { outcome, release } = await executeImages(execution, run.signal).finally(() =>
    listening.abort(),
  );
  engine.memory.replace(rememberOutcome(engine.memory.current(), outcome, { runtimeKey, release }));
  return outcome;
}

/** The limit of removals in one pass, less what was tried before. */
function limitsAfter(limits: ImageLimits, before: ContainerOutcome | null): ImageLimits {
  if (limits.maximumRemovals === null || before === null) return limits;
  const tried = [
    ...before.containers,
    ...before.sandboxes,
    ...before.logs.filter(({ kind }) => kind === "pod-logs"),
  ].filter(({ result }) => result.kind !== "skipped").length;
  return { ...limits, maximumRemovals: Math.max(0, limits.maximumRemovals - tried) };
}

/** Under which a runtime's way of giving space back is remembered. */
export const releaseKey = (runtime: RuntimeInfo): string => `${runtime.name}/${runtime.version}`;

/** Everything of the plan but the lists: a container that the plan removed first is gone from them by itself. */
function judgeInput(
  engine: Engine,
  given: { readonly prepared: Prepared; readonly fresh: Snapshot; readonly waited: Duration },
): JudgeImages {
  const { decided, ledger } = given.prepared;
  const hold = engine.hold();
  return {
    snapshot: given.fresh,
    ledger,
    limits: decided.limits.images,
    // As it is now: who holds collection back means the pass that runs.
    hold: hold.kind === "none" ? null : hold,
    without: new Set<ContainerId>(),
    podSource: listSource({ ...decided, snapshot: given.fresh }),
    waitedForPods: given.waited,
  };
}

/**
 * The list that is refreshed beside the pass, or another process, may have seen the image missing while this pass waited: then
 * its record has ended, and what is listed now is another one than was planned. The kubelet does not notice.
 */
function returned(
  { memory, limits }: Engine,
  of: { readonly prepared: Prepared; readonly candidate: ImageCandidate },
): ImageKeepReason | null {
  if (limits().images.compat === "kubelet") return null;
  const { id } = of.candidate.image;
  const planned = of.prepared.ledger.images.get(id)?.firstSeenWatched;
  return memory.current().images.get(id)?.firstSeenWatched === planned
    ? null
    : { kind: "changed", what: "it went and came back since the plan was made" };
}

/**
 * Forgets an image before it asks for its removal: one that is back before the next observation must not pass for the old
 * one, not even where this process ends before the answer. What was refused is remembered as it was; what was not answered
 * in time may go yet, and come back before anybody looks: like a ghost it is left alone for a while.
 */
const forgetting = ({ writer, memory }: Engine): ImageExecution["writer"] => ({
  removeImage: async (id) => {
    const before = memory.current().images.get(id);
    const forget = () => memory.replace(forgetImages(memory.current(), [id]));
    forget();
    try {
      await writer.removeImage(id);
    } catch (thrown) {
      if (before !== undefined) {
        const recalled = recallImage(memory.current(), id, before);
        const mayGoYet = thrown instanceof RuntimeError && isUnanswered(thrown.kind);
        memory.replace(
          mayGoYet ? rememberGhost(recalled, { image: { id }, record: before }) : recalled,
        );
      }
      throw thrown;
    }
    // Somebody may have looked while the answer was awaited.
    forget();
  },
});

function rememberOutcome(
  ledger: Ledger,
  outcome: ImageOutcome,
  learned: { readonly runtimeKey: string; readonly release: ReleaseRecord },
): Ledger {
  if (outcome.items.length === 0) return ledger;
  const ghosts = outcome.items.filter(({ result }) => result.kind === "ghost");
  const removed = outcome.items.filter(({ result }) => result.kind === "removed");
  const next = ghosts.reduce(
    (sum, { candidate }) => rememberGhost(sum, candidate),
    forgetImages(
      ledger,
      removed.map(({ candidate }) => candidate.image.id),
    ),
  );
  return { ...next, releases: new Map(next.releases).set(learned.runtimeKey, learned.release) };
}

const storePlace = (snapshot: Snapshot, role: "imagefs" | "containerfs"): Filesystem | null =>
  snapshot.filesystems.find((one) => one.roles.includes(role)) ??
  snapshot.filesystems.find((one) => one.roles.includes("imagefs")) ??
  null;
