/** What one pass has to free: the targets of its purpose, without those that removing images cannot reach. */
import type { Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageBlock, ImageTrigger } from "../../model/reason.ts";
import type { Facts } from "../facts.ts";
import { layersCount } from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import type { KnownLayers } from "../space/disk.ts";
import { gainOf, pausesOf } from "../space/freed.ts";
import { type DiskTarget, futilityOf } from "../space/futility.ts";
import {
  type DiskJudgement,
  imageFilesystems,
  judgeDisks,
  storeTargets,
  watchesSpace,
} from "../space/targets.ts";
import type { Judgement } from "./judge.ts";

export interface RemovalDemand {
  readonly disks: DiskJudgement;
  /** Everything that is met, futile or not. */
  readonly triggers: readonly ImageTrigger[];
  /** What a pass frees down to. */
  readonly targets: readonly ImageTarget[];
  readonly futility: readonly Futility[];
  /** Conditions of the disk that block removal. */
  readonly blocks: readonly ImageBlock[];
  /** Targets that no image is removed for; reported if nothing else triggers. */
  readonly futile: readonly OutOfReach[];
  /** Where removals gave no space back: no image is removed there for now; reported if nothing else triggers. */
  readonly paused: readonly Extract<ImageBlock, { readonly kind: "nothing-freed" }>[];
  /** Both, of disks that trigger and have no target. */
  readonly outOfReach: readonly OutOfReach[];
  /** Paths of those on which one image may be tried. */
  readonly tried: readonly string[];
  /** Whether all that hold images are paused, so that no age or budget removes any. */
  readonly isStorePaused: boolean;
}

type OutOfReach = Extract<ImageBlock, { readonly kind: "futile" | "nothing-freed" }>;

interface JudgedTarget {
  readonly target: ImageTarget;
  readonly futility: Futility | null;
}

export function removalDemand(facts: Facts, judgement: Judgement): RemovalDemand {
  const { snapshot, purpose, limits } = facts;
  const disks = judgeDisks(snapshot, limits.images);
  const wanted = wantedTargets(facts, disks).map((target): JudgedTarget => ({
    target,
    futility: futilityOfTarget(target, facts, judgement),
  }));
  const collects = limits.images.whenFutile === "collect";
  const hopeless = hopelessDevices(wanted);
  const pauses = pausesOf(facts);
  const isPaused = (device: string): boolean => (pauses.get(device) ?? 0n) > 0n;
  const stores = imageFilesystems(snapshot, limits.images);
  const isStorePaused = stores.length > 0 && stores.every(({ device }) => isPaused(device));
  // Other triggers (an age, a budget, another disk) are not futile because one disk is.
  const useful = wanted.filter(
    ({ target, futility }) =>
      !("device" in target ? isPaused(target.device) : isStorePaused) &&
      (collects ||
        !(futility?.futile === true || (isOfPressure(target) && hopeless.has(target.device)))),
  );
  const known = snapshot.filesystems.flatMap(({ device, path: filesystem }) => {
    const remaining = pauses.get(device);
    return remaining === undefined ? [] : [{ filesystem, remaining }];
  });
  const paused = known
    .filter(({ remaining }) => remaining > 0n)
    .map((one) => ({ kind: "nothing-freed" as const, ...one }));
  const left = wanted.filter((one) => !useful.includes(one));
  const futile = collects ? [] : futileBlocks(left.flatMap(({ futility }) => futility ?? []));
  // The kubelet looks at no disk when it removes everything unused.
  const countsDisks = limits.images.compat === "none" || purpose.kind === "periodic";
  return {
    disks,
    triggers: distinctTriggers(wanted.map(({ target }) => target)),
    targets: useful.map(({ target }) => target),
    futility: wanted.flatMap(({ futility }) => (futility === null ? [] : [futility])),
    blocks: countsDisks ? disks.blocks : [],
    futile,
    paused,
    outOfReach: [
      ...futile,
      ...paused.filter(({ filesystem }) =>
        left.some(({ target }) => "path" in target && target.path === filesystem),
      ),
    ],
    tried: known.filter(({ remaining }) => remaining === 0n).map(({ filesystem }) => filesystem),
    isStorePaused,
  };
}

/** One for each filesystem and unit, with the largest need. */
function futileBlocks(futility: readonly Futility[]): readonly OutOfReach[] {
  const needOf = (one: Futility): bigint => one.inodes?.needed ?? one.neededBytes;
  const largest = new Map<string, Futility>();
  for (const one of futility) {
    const key = `${one.inodes === undefined ? "bytes" : "inodes"} ${one.filesystem}`;
    const before = largest.get(key);
    if (one.futile && (before === undefined || needOf(one) > needOf(before))) largest.set(key, one);
  }
  return Array.from(largest.values(), ({ filesystem, boundBytes, neededBytes, inodes }) => ({
    kind: "futile",
    filesystem,
    boundBytes,
    neededBytes,
    ...(inodes === undefined ? {} : { inodes: { bound: inodes.bound, needed: inodes.needed } }),
  }));
}

/** Each trigger once, in the order of the targets. */
export function distinctTriggers(targets: readonly ImageTarget[]): readonly ImageTrigger[] {
  const byText = new Map(
    targets.map(({ trigger }) => [
      trigger.kind === "pressure" ? trigger.signal : trigger.kind,
      trigger,
    ]),
  );
  return [...byText.values()];
}

function wantedTargets(facts: Facts, disks: DiskJudgement): readonly ImageTarget[] {
  const { snapshot, purpose, limits } = facts;
  if (purpose.kind === "all-unused")
    return [{ kind: "everything", trigger: { kind: "all-unused" } }];
  // A disk that has vanished since it was judged, for example by an unmount, triggers nothing.
  const ofPressure = facts.pressureTargets.filter(
    (target) =>
      !("device" in target) || snapshot.filesystems.some(({ device }) => device === target.device),
  );
  if (purpose.kind === "pressure") return ofPressure;
  const forest = knownLayers(facts)?.forest ?? null;
  const ofDisks = isSpaceOff(facts) ? [] : disks.targets;
  return [...ofDisks, ...storeTargets(snapshot, limits.images, forest), ...ofPressure];
}

function futilityOfTarget(
  target: ImageTarget,
  facts: Facts,
  { images, usage }: Judgement,
): Futility | null {
  const { filesystems, logs } = facts.snapshot;
  const filesystem = filesystems.find(
    ({ device }) => "device" in target && device === target.device,
  );
  if (!("device" in target) || filesystem === undefined) return null;
  return futilityOf(target, filesystem, {
    images: images().map(({ image }) => image),
    filesystems,
    logs,
    users: usage.users,
    layers: knownLayers(facts),
  });
}

/** `null` where layers do not matter. */
const knownLayers = ({ limits, purpose, snapshot, ledger }: Facts): KnownLayers | null =>
  layersCount(limits.images, purpose)
    ? {
        forest: forestOf(snapshot.images, ledger),
        mostPerMille: gainOf(ledger, snapshot.runtime).most,
      }
    : null;

/**
 * Disks whose pressure cannot be ended. It ends with the last of its thresholds: if one of them stays met whatever is
 * removed, removing images for a milder one is a waste.
 */
const hopelessDevices = (wanted: readonly JudgedTarget[]): ReadonlySet<string> =>
  new Set(
    wanted.flatMap(({ target, futility }) =>
      futility?.futile === true && isOfPressure(target) ? [target.device] : [],
    ),
  );

/** With `compat: kubelet` the agent's loop decides whether a pass runs at all; a single pass has no loop. */
export const isSpaceOff = ({ limits, startedAt }: Facts): boolean =>
  !watchesSpace(limits.images) && (limits.images.compat === "none" || startedAt === null);

const isOfPressure = (target: ImageTarget): target is DiskTarget =>
  "device" in target && target.trigger.kind === "pressure";
