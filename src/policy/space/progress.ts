/** Whether a pass goes on: it has not freed enough yet, and what remains can still reach a target. */
import type { ImageItem } from "../../model/outcome.ts";
import type { ImagePlan, ImageTarget } from "../../model/plan.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import type { Facts } from "../facts.ts";
import { distinctImages } from "../image/image-index.ts";
import { usageOf } from "../image/usage.ts";
import { layersCount } from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import { gainOf, rememberGain } from "./freed.ts";
import { boundOf, bytesAfter, mostOf, relievedOf, unitOf } from "./futility.ts";
import { imageUseOf } from "./targets.ts";

/** The measurements after the latest removal, and the gains since the start of the pass; maps are by device. */
export interface Progress {
  readonly accounting: "measured" | "reported";
  readonly availableBytes: ReadonlyMap<string, bigint>;
  readonly inodesFree: ReadonlyMap<string, bigint>;
  readonly gainedBytes: ReadonlyMap<string, bigint>;
  readonly gainedInodes: ReadonlyMap<string, bigint>;
  /** The size of the image store now; `null`: the runtime does not say, so reported sizes count. */
  readonly storeBytes: bigint | null;
  readonly imageCount: number;
  /** Reported sizes of images removed for the targets, added up. */
  readonly reportedBytes: bigint;
  /** The same for all images removed in this pass, each layer once where layers are known. */
  readonly estimatedBytes: bigint;
  /** How many images were removed for the targets. */
  readonly removed: number;
}

export type Met = "target-reached" | "own-gain-reached";

/** `null`: the pass continues. It ends when every target is met, so the strictest wins; an empty list is met. */
export function targetsMet(targets: readonly ImageTarget[], progress: Progress): Met | null {
  const all = targets.map((target) => targetMet(target, progress));
  if (all.includes(null)) return null;
  return all.includes("own-gain-reached") ? "own-gain-reached" : "target-reached";
}

/** The same if no candidate is left: with reported sizes, a target of 0 is then met without a removal. */
export const metAfterAll = (targets: readonly ImageTarget[], progress: Progress): Met | null =>
  targetsMet(targets, { ...progress, removed: Math.max(1, progress.removed) });

function targetMet(target: ImageTarget, progress: Progress): Met | null {
  const { accounting, storeBytes, reportedBytes, estimatedBytes } = progress;
  const isReported = accounting === "reported";
  switch (target.kind) {
    case "available-bytes":
      // The kubelet checks only after a removal, so it removes one image even if the target is 0.
      if (isReported) return isMet(progress.removed > 0 && reportedBytes >= target.wantedBytes);
      return (
        isMet((progress.availableBytes.get(target.device) ?? -1n) >= target.availableBytes) ??
        isGained(progress.gainedBytes.get(target.device), target.wantedBytes)
      );
    case "free-inodes":
      return (
        isMet((progress.inodesFree.get(target.device) ?? -1n) >= target.inodesFree) ??
        isGained(progress.gainedInodes.get(target.device), target.wantedInodes)
      );
    case "store-bytes":
      if (isReported) return isMet(reportedBytes >= target.wantedBytes);
      return isMet(
        storeBytes === null
          ? estimatedBytes >= target.wantedBytes
          : storeBytes <= target.maximumBytes,
      );
    case "image-count":
      return isMet(progress.imageCount <= target.maximumImages);
    case "everything":
      return null;
  }
}

const isMet = (is: boolean): Met | null => (is ? "target-reached" : null);

/** Own gains end a pass if others write as fast as it frees. */
const isGained = (gained = 0n, wanted: bigint): Met | null =>
  gained > 0n && gained >= wanted ? "own-gain-reached" : null;

/** The bytes that a target lacks on its disk or in its budget; `null` if it is not about measured bytes. */
export function lackedBytes(target: ImageTarget, progress: Progress): bigint | null {
  if (target.kind === "store-bytes")
    return progress.storeBytes === null ? null : progress.storeBytes - target.maximumBytes;
  if (target.kind !== "available-bytes") return null;
  const { device, availableBytes, wantedBytes } = target;
  return smaller(
    availableBytes - (progress.availableBytes.get(device) ?? 0n),
    wantedBytes - (progress.gainedBytes.get(device) ?? 0n),
  );
}

/**
 * Whether the remaining candidates can still reach the targets: judged as the plan did, with what the pass removed and
 * learned since.
 */
export function targetReach(
  facts: Pick<Facts, "snapshot" | "ledger" | "purpose" | "limits">,
  { targets, candidates }: Pick<ImagePlan, "targets" | "candidates">,
): (progress: Progress, items: readonly ImageItem[]) => boolean {
  const { snapshot, purpose } = facts;
  const forest = layersCount(facts.limits.images, purpose, targets)
    ? forestOf(snapshot.images, facts.ledger)
    : null;
  const unused = unusedInOrder(snapshot, candidates);
  const unusedBytes = bytesAfter(unused, forest);
  let learned = facts.ledger;
  let seen = 0;
  return (progress, items) => {
    learned = rememberGain(learned, { runtime: snapshot.runtime, items: items.slice(seen) });
    seen = items.length;
    const removed = items.flatMap(({ candidate, result }) =>
      result.kind === "removed" ? [candidate.image.id] : [],
    );
    const bytesLeft = unusedBytes(removed);
    const mostPerMille = gainOf(learned, snapshot.runtime).most;
    const canBeMet = (target: ImageTarget): boolean => {
      if (!("device" in target)) return true;
      const { device } = target;
      const filesystem = snapshot.filesystems.find((one) => one.device === device);
      if (filesystem === undefined) return true;
      const unit = unitOf(target);
      const inBytes = unit === "bytes";
      const free = (inBytes ? progress.availableBytes : progress.inodesFree).get(device) ?? 0n;
      const gained = (inBytes ? progress.gainedBytes : progress.gainedInodes).get(device) ?? 0n;
      const used = imageUseOf(filesystem, snapshot)[unit];
      const bound = boundOf(unit, {
        used: used === null ? null : atLeastZero(used - gained),
        unused: inBytes ? bytesLeft : BigInt(unused.length - removed.length),
        mostPerMille: mostOf(unused, forest === null ? null : { forest, mostPerMille }),
        inUse: filesystem.capacityBytes - (progress.availableBytes.get(device) ?? 0n),
      });
      return bound === null || free + bound >= relievedOf(target);
    };
    // A target that is met needs nothing more.
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    if (purpose.kind !== "pressure") return open.some(canBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(canBeMet));
  };
}

/** Candidates in the order of removal, then the other unused images. */
function unusedInOrder(snapshot: Snapshot, candidates: ImagePlan["candidates"]): readonly Image[] {
  const { users } = usageOf(snapshot);
  const due = new Set(candidates.map(({ image }) => image.id));
  const others = distinctImages(snapshot.images, "any").filter(
    ({ id }) => !users.has(id) && !due.has(id),
  );
  return [...candidates.map(({ image }) => image), ...others];
}
