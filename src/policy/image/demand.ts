/** What one pass has to free: the targets of its purpose, without those that removing images cannot reach. */

import type { Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageBlock, ImageTrigger } from "../../model/reason.ts";
import { compared } from "../../model/values.ts";
import { breakdownOf } from "../disk.ts";
import type { Facts } from "../facts.ts";
import { layersOf } from "../origins.ts";
import {
  budgetTargets,
  type DiskJudgement,
  freeTargets,
  futilityOf,
  judgeDisks,
  watchesSpace,
} from "../space.ts";
import { distinctImages } from "./image-index.ts";
import type { Judgement } from "./judge.ts";

type OutOfReach = Extract<ImageBlock, { readonly kind: "futile" | "nothing-freed" }>;

export interface RemovalDemand {
  readonly disks: DiskJudgement;
  /** Everything that is met, futile or not. */
  readonly triggers: readonly ImageTrigger[];
  /** What a pass frees down to. */
  readonly targets: readonly ImageTarget[];
  readonly futility: readonly Futility[];
  /** Why no image is removed for a disk that triggers. */
  readonly outOfReach: readonly OutOfReach[];
  /** Whether all disks that hold images are paused, so that no age or budget removes any. */
  readonly isStorePaused: boolean;
}

export function removalDemand(facts: Facts, judgement: Judgement): RemovalDemand {
  const { snapshot, limits, paused } = facts;
  const disks = judgeDisks(snapshot, limits.images);
  const wanted = wantedTargets(facts, disks);
  const futility = futilityOfTargets(wanted, facts, judgement);
  const stores = snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
  const isStorePaused = stores.length > 0 && stores.every(({ device }) => paused.has(device));
  const ofDisks = wanted.filter((target) => "device" in target);
  const futile = ofDisks.filter((target) => futility.get(target)?.futile === true);
  // The pressure on a disk ends with the last of its thresholds.
  const hopeless = new Set(futile.filter(isOfPressure).map(({ device }) => device));
  const targets = wanted.filter((target) => {
    if (!("device" in target)) return !isStorePaused;
    const { device } = target;
    const isHopeless = isOfPressure(target) ? hopeless.has(device) : futile.includes(target);
    return !paused.has(device) && !isHopeless;
  });
  const pauses = stores.flatMap(({ device, path: filesystem }) => {
    const remaining = paused.get(device);
    return remaining === undefined
      ? []
      : [{ kind: "nothing-freed" as const, filesystem, remaining }];
  });
  return {
    disks,
    triggers: distinctTriggers(wanted),
    targets,
    futility: [...futility.values()],
    outOfReach: [...futileBlocks([...futility.values()]), ...pauses],
    isStorePaused,
  };
}

/** One for each filesystem and unit, with the largest need. */
function futileBlocks(futility: readonly Futility[]): readonly OutOfReach[] {
  const needOf = (one: Futility): bigint => one.inodes?.needed ?? one.neededBytes;
  const smallestFirst = futility
    .filter(({ futile }) => futile)
    .toSorted((one, other) => compared(needOf(one), needOf(other)));
  const largest = new Map(
    smallestFirst.map((one) => [JSON.stringify([one.filesystem, "inodes" in one]), one]),
  );
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
  const { snapshot, ledger, purpose, limits } = facts;
  if (purpose.kind === "all-unused")
    return [{ kind: "everything", trigger: { kind: "all-unused" } }];
  // A disk that has vanished since it was judged, for example by an unmount, triggers nothing.
  const ofPressure = facts.pressureTargets.filter(
    (target) =>
      !("device" in target) || snapshot.filesystems.some(({ device }) => device === target.device),
  );
  if (purpose.kind === "pressure") return ofPressure;
  const images = distinctImages(snapshot.images, "any");
  const size = (): bigint => layersOf(snapshot.images, ledger).sizeOf(images);
  const ofDisks = watchesSpace(limits.images) ? disks.targets : [];
  const ofRequest = freeTargets(snapshot, purpose.freeBytes ?? 0n);
  return [...ofRequest, ...ofDisks, ...budgetTargets(size, limits.images), ...ofPressure];
}

function futilityOfTargets(
  targets: readonly ImageTarget[],
  { snapshot, ledger }: Facts,
  { images, usage }: Judgement,
): ReadonlyMap<ImageTarget, Futility> {
  const judged = new Map<ImageTarget, Futility>();
  for (const target of targets)
    for (const filesystem of snapshot.filesystems) {
      if (!("device" in target) || target.device !== filesystem.device) continue;
      const layers = layersOf(snapshot.images, ledger);
      const unused = images().flatMap(({ image }) => (usage.users.has(image.id) ? [] : [image]));
      const given = {
        snapshot,
        unusedBytes: unused.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n),
        breakdown: breakdownOf(filesystem, { ...snapshot, layers }),
      };
      judged.set(target, futilityOf(target, filesystem, given));
    }
  return judged;
}

const isOfPressure = ({ trigger }: ImageTarget): boolean => trigger.kind === "pressure";
