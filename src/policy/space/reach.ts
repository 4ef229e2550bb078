/** Judges in the middle of a pass whether what is left to remove could still reach its targets. */
import { assertNever } from "../../model/assert.ts";
import type { ImageTarget, Purpose } from "../../model/plan.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { distinctImages } from "../image/image-index.ts";
import { type ImageUse, imageUseOf } from "../image/image-use.ts";
import { usageOf } from "../image/usage.ts";
import { reportedBytes, stillUseful } from "./futility.ts";
import { inodesStillUseful } from "./inode-futility.ts";
import { type Progress, targetsMet } from "./progress.ts";

export interface ReachFacts {
  /** The plan's. */
  readonly snapshot: Snapshot;
  readonly purpose: Purpose;
  readonly targets: readonly ImageTarget[];
}

/** What is unused is added up once; each judgement after that costs no more on a large node. A target that is met asks for nothing more. */
export function targetReach(facts: ReachFacts): (progress: Progress) => boolean {
  const { snapshot, purpose, targets } = facts;
  const { users } = usageOf(snapshot);
  const unusedImages = distinctImages(snapshot.images, "any").filter(({ id }) => !users.has(id));
  const unused = { bytes: reportedBytes(unusedImages), images: unusedImages.length };
  const uses = new Map(
    snapshot.filesystems.map((one) => [one.device, imageUseOf(one, snapshot)] as const),
  );
  return (progress) => {
    const open = targets.filter((target) => targetsMet([target], progress) === null);
    const canBeMet = (target: ImageTarget): boolean =>
      canStillReach(target, { uses, unused, progress });
    if (purpose.kind !== "pressure") return open.some(canBeMet);
    // The pressure on a disk ends with the last of its thresholds.
    const ofDisk = Map.groupBy(open, (target) => ("device" in target ? target.device : ""));
    return [...ofDisk.values()].some((those) => those.every(canBeMet));
  };
}

interface Reach {
  /** What images take, by device; with what is unused, as the plan found it. */
  readonly uses: ReadonlyMap<string, ImageUse>;
  readonly unused: { readonly bytes: bigint; readonly images: number };
  readonly progress: Progress;
}

function canStillReach(target: ImageTarget, { uses, unused, progress }: Reach): boolean {
  const use = "device" in target ? uses.get(target.device) : undefined;
  switch (target.kind) {
    case "available-bytes":
      return stillUseful({
        target,
        availableBytes: progress.availableBytes.get(target.device) ?? 0n,
        imageUsedBytes: use?.bytes ?? null,
        gainedBytes: progress.gainedBytes.get(target.device) ?? 0n,
        unusedReportedBytes: unused.bytes - progress.reportedBytes,
      });
    case "free-inodes":
      return inodesStillUseful({
        target,
        inodesFree: progress.inodesFree.get(target.device) ?? 0n,
        imageInodesUsed: use?.inodes ?? null,
        gainedInodes: progress.gainedInodes.get(target.device) ?? 0n,
        unusedImages: unused.images - progress.removed,
      });
    case "store-bytes":
    case "image-count":
    case "everything":
      return true;
    default:
      return assertNever(target);
  }
}
