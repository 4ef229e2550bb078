/** Decides during a pass whether the remaining candidates can still reach its targets. */
import type { ImageItem } from "../../model/outcome.ts";
import type { ImagePlan, ImageTarget } from "../../model/plan.ts";
import { once } from "../by-object.ts";
import type { Facts } from "../facts.ts";
import { distinctImages } from "../image/image-index.ts";
import { imageUseOf } from "../image/image-use.ts";
import { usageOf } from "../image/usage.ts";
import { gainOf, rememberGain } from "../layer/gain.ts";
import { layersCount } from "../layer/layer-order.ts";
import { forestOf } from "../layer/origins.ts";
import { stillUseful, unitOf, UnusedImages } from "./futility.ts";
import { type Progress, targetsMet } from "./progress.ts";

/**
 * Judges as the plan did, with what the pass removed and learned since. Adds up the unused images when first needed, so
 * that each later judgement is cheap on a large node. A target that is met needs nothing more.
 */
export function targetReach(
  { snapshot, ledger, purpose, limits }: Pick<Facts, "snapshot" | "ledger" | "purpose" | "limits">,
  { targets, candidates }: Pick<ImagePlan, "targets" | "candidates">,
): (progress: Progress, items: readonly ImageItem[]) => boolean {
  const unusedOf = once(() => {
    const { users } = usageOf(snapshot);
    const unused = distinctImages(snapshot.images, "any").filter(({ id }) => !users.has(id));
    const due = new Set(candidates.map(({ image }) => image.id));
    const inOrder = [
      ...candidates.map(({ image }) => image),
      ...unused.filter(({ id }) => !due.has(id)),
    ];
    const layered = layersCount(limits.images, purpose, targets);
    return new UnusedImages(inOrder, layered ? forestOf(snapshot.images, ledger) : null);
  });
  let learned = ledger;
  let seen = 0;
  return (progress, items) => {
    learned = rememberGain(learned, { runtime: snapshot.runtime, items: items.slice(seen) });
    seen = items.length;
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    const unused = unusedOf();
    const removed = items.flatMap(({ candidate, result }) =>
      result.kind === "removed" ? [candidate.image.id] : [],
    );
    const canBeMet = (target: ImageTarget): boolean => {
      const filesystem = snapshot.filesystems.find(
        ({ device }) => "device" in target && device === target.device,
      );
      if (!("device" in target) || filesystem === undefined) return true;
      const unit = unitOf(target);
      const [free, gained] =
        unit === "bytes"
          ? [progress.availableBytes, progress.gainedBytes]
          : [progress.inodesFree, progress.gainedInodes];
      const freeNow = free.get(target.device) ?? 0n;
      return stillUseful({
        target,
        free: freeNow,
        used: imageUseOf(filesystem, snapshot)[unit],
        gained: gained.get(target.device) ?? 0n,
        unused:
          unit === "bytes" ? unused.bytesAfter(removed) : BigInt(unused.count - removed.length),
        mostPerMille: unused.hasLayers ? gainOf(learned, snapshot.runtime).most : null,
        inUse: filesystem.capacityBytes - (progress.availableBytes.get(target.device) ?? 0n),
      });
    };
    if (purpose.kind !== "pressure") return open.some(canBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(canBeMet));
  };
}
