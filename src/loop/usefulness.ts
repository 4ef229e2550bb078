/** Judges in the middle of a pass whether what is left could still bring relief on a disk that a target speaks of. */

import type { ImageExecution } from "../execute/image-execution.ts";
import { targetsMet } from "../execute/progress.ts";
import { assertNever } from "../model/assert.ts";
import type { ImageTarget } from "../model/plan.ts";
import { reportedBytes, stillUseful } from "../policy/futility.ts";
import { distinctImages } from "../policy/image-index.ts";
import { inodesStillUseful } from "../policy/inode-futility.ts";
import { usageOf } from "../policy/usage.ts";
import type { Prepared } from "./prepare.ts";

/** A target that is met already asks for nothing more, so only the others count. */
export function usefulness(
  prepared: Pick<Prepared, "snapshot" | "plan" | "decided">,
): ImageExecution["stillUseful"] {
  const { snapshot, decided } = prepared;
  const targets = prepared.plan.images?.targets ?? [];
  if (decided.limits.images.whenFutile === "collect") return () => true;
  const { users } = usageOf(snapshot);
  const unusedImages = distinctImages(snapshot.images, "any").filter(({ id }) => !users.has(id));
  const unused = reportedBytes(unusedImages);
  const disks = new Map(snapshot.filesystems.map((one) => [one.device, one]));
  return (_rest, meter) => {
    const progress = meter.progress();
    const couldBeMet = (target: ImageTarget): boolean => {
      switch (target.kind) {
        case "available-bytes":
          return stillUseful({
            target,
            availableBytes: progress.availableBytes.get(target.device) ?? 0n,
            imageUsedBytes: disks.get(target.device)?.imageUsedBytes ?? null,
            gainedBytes: meter.gainedBytes(target.device),
            unusedReportedBytes: unused - meter.totals().reportedFreedBytes,
          });
        case "free-inodes":
          return inodesStillUseful({
            target,
            inodesFree: progress.inodesFree.get(target.device) ?? 0n,
            imageInodesUsed: disks.get(target.device)?.imageInodesUsed ?? null,
            gainedInodes: progress.gainedInodes.get(target.device) ?? 0n,
            unusedImages: unusedImages.length - progress.removed,
          });
        case "store-bytes":
        case "image-count":
        case "everything":
          return true;
        default:
          return assertNever(target);
      }
    };
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    if (decided.purpose.kind !== "pressure") return open.some(couldBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(couldBeMet));
  };
}
