/** Decides during a pass whether the remaining candidates can still reach its targets. */
import type { ImageTarget } from "../../model/plan.ts";
import { once } from "../by-object.ts";
import type { Facts } from "../facts.ts";
import { distinctImages } from "../image/image-index.ts";
import { type ImageUse, imageUseOf } from "../image/image-use.ts";
import { usageOf } from "../image/usage.ts";
import { reportedBytes, stillUseful, unitOf } from "./futility.ts";
import { type Progress, targetsMet } from "./progress.ts";

/**
 * Adds up the unused images once, when first needed, so that each later judgement is cheap on a large node. A target
 * that is met needs nothing more.
 */
export function targetReach(
  { snapshot, purpose }: Pick<Facts, "snapshot" | "purpose">,
  targets: readonly ImageTarget[],
): (progress: Progress) => boolean {
  const node = once(() => {
    const { users } = usageOf(snapshot);
    const unused = distinctImages(snapshot.images, "any").filter(({ id }) => !users.has(id));
    return {
      unused: { bytes: reportedBytes(unused), images: unused.length },
      uses: new Map(
        snapshot.filesystems.map((one) => [one.device, imageUseOf(one, snapshot)] as const),
      ),
    };
  });
  return (progress) => {
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    const canBeMet = (target: ImageTarget): boolean =>
      canStillReach(target, { ...node(), progress });
    if (purpose.kind !== "pressure") return open.some(canBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(canBeMet));
  };
}

interface Reach {
  /** The space of images by device, including unused ones, as of the plan. */
  readonly uses: ReadonlyMap<string, ImageUse>;
  readonly unused: { readonly bytes: bigint; readonly images: number };
  readonly progress: Progress;
}

function canStillReach(target: ImageTarget, { uses, unused, progress }: Reach): boolean {
  if (!("device" in target)) return true;
  const { device } = target;
  const unit = unitOf(target);
  const [free, gained, left] =
    unit === "bytes"
      ? [progress.availableBytes, progress.gainedBytes, unused.bytes - progress.reportedBytes]
      : [progress.inodesFree, progress.gainedInodes, BigInt(unused.images - progress.removed)];
  return stillUseful({
    target,
    free: free.get(device) ?? 0n,
    used: uses.get(device)?.[unit] ?? null,
    gained: gained.get(device) ?? 0n,
    unused: left,
  });
}
