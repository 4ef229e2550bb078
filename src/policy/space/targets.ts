/** The triggers of a periodic image pass and their targets: space, inodes, a budget, a number of images. */
import type { ImageLimits } from "../../model/limits.ts";
import type { DiskUsage, ImageTarget, PlanNote } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { distinctImages } from "../image/image-index.ts";
import { imageUseOf } from "../image/image-use.ts";
import type { LayerForest } from "../layer/layers.ts";
import { reportedBytes } from "./futility.ts";
import { checkedInodes, checkedSpace, shortageOf, usedPercent } from "./space.ts";

export interface DiskJudgement {
  readonly usage: readonly DiskUsage[];
  /** Filesystems with implausible figures. */
  readonly blocks: readonly ImageBlock[];
  /** Targets of the thresholds that are met, each with its trigger. */
  readonly targets: readonly ImageTarget[];
  readonly notes: readonly PlanNote[];
}

/** Judges every image filesystem; the kubelet looks only at the first. */
export function judgeDisks(
  snapshot: Pick<Snapshot, "filesystems">,
  limits: ImageLimits,
): DiskJudgement {
  const filesystems = imageFilesystems(snapshot, limits);
  if (filesystems.length === 0) {
    const message = "the runtime names no image filesystem";
    return {
      usage: [],
      blocks: [{ kind: "invalid-capacity", path: "", message }],
      targets: [],
      notes: [],
    };
  }
  const judged = filesystems.map((filesystem) => judgeDisk(filesystem, limits));
  return {
    usage: judged.flatMap(({ usage }) => usage),
    blocks: judged.flatMap(({ blocks }) => blocks),
    targets: judged.flatMap(({ targets }) => targets),
    notes: judged.flatMap(({ notes }) => notes),
  };
}

/** Targets independent of a filesystem's thresholds: the size of the store, and the number of images. */
export function storeTargets(
  snapshot: Snapshot,
  limits: ImageLimits,
  forest: LayerForest | null,
): readonly ImageTarget[] {
  const { storeBudgetBytes: maximumBytes, maximumImages } = limits;
  const targets: ImageTarget[] = [];
  const wantedBytes = maximumBytes === null ? 0n : storeBytes(snapshot, forest) - maximumBytes;
  if (maximumBytes !== null && wantedBytes > 0n) {
    targets.push({ kind: "store-bytes", trigger: { kind: "budget" }, maximumBytes, wantedBytes });
  }
  const wantedImages =
    maximumImages === null ? 0 : distinctImages(snapshot.images, "any").length - maximumImages;
  if (maximumImages !== null && wantedImages > 0) {
    targets.push({ kind: "image-count", trigger: { kind: "count" }, maximumImages, wantedImages });
  }
  return targets;
}

/**
 * The size of the image store: the runtime's figure. If it gives none, the reported sizes, with each layer once; where
 * layers do not matter, they are added up.
 */
export function storeBytes(
  snapshot: Pick<Snapshot, "filesystems" | "images">,
  forest: LayerForest | null,
): bigint {
  const counted = countedStoreBytes(snapshot);
  if (counted !== null) return counted;
  const images = distinctImages(snapshot.images, "any");
  return forest?.union(images).estimateBytes ?? reportedBytes(images);
}

/** The runtime's figure, of all filesystems that hold images; `null` if it gives none. */
export function countedStoreBytes(
  snapshot: Pick<Snapshot, "filesystems" | "images">,
): bigint | null {
  const counted = snapshot.filesystems.reduce(
    (sum, filesystem) => sum + (imageUseOf(filesystem, snapshot).bytes ?? 0n),
    0n,
  );
  return counted > 0n ? counted : null;
}

/** The filesystem that holds the images; `null` if the runtime names none. */
export const storeFilesystem = ({
  filesystems,
}: Pick<Snapshot, "filesystems">): Filesystem | null =>
  filesystems.find(({ roles }) => roles.includes("imagefs")) ?? null;

/** Whether a threshold on space is in force: 100 without a maximum age turns image GC off, as in the kubelet. */
export const watchesSpace = ({ highPercent, maximumAge }: ImageLimits): boolean =>
  highPercent !== 100 || maximumAge !== 0n;

/** Whether the periodic image GC loop has anything to do with these limits. */
export const collectsImages = (limits: ImageLimits): boolean =>
  watchesSpace(limits) ||
  limits.inodeHighPercent !== null ||
  limits.storeBudgetBytes !== null ||
  limits.maximumImages !== null;

export function imageFilesystems(
  { filesystems }: Pick<Snapshot, "filesystems">,
  { compat }: Pick<ImageLimits, "compat">,
): readonly Filesystem[] {
  const those = filesystems.filter(({ roles }) => roles.includes("imagefs"));
  return compat === "kubelet" ? those.slice(0, 1) : those;
}

function judgeDisk(filesystem: Filesystem, limits: ImageLimits): DiskJudgement {
  const { highPercent, lowPercent, compat } = limits;
  const { path, device } = filesystem;
  const checked = checkedSpace(filesystem, compat);
  if (checked.kind === "invalid") {
    const block: ImageBlock = { kind: "invalid-capacity", path, message: checked.message };
    return { usage: [], blocks: [block], targets: [], notes: [] };
  }
  const shortage = shortageOf(checked.amounts, { high: highPercent, low: lowPercent });
  const targets: ImageTarget[] = [];
  // With `compat: kubelet`, the loop decides whether a pass runs at all.
  if (shortage.triggered && (compat === "kubelet" || watchesSpace(limits))) {
    targets.push({
      kind: "available-bytes",
      trigger: { kind: "space" },
      device,
      path,
      availableBytes: shortage.target,
      wantedBytes: shortage.wanted,
      relievedBytes: shortage.relieved,
    });
  }
  targets.push(...inodeTargets(filesystem, limits));
  const inodes = checkedInodes(filesystem);
  const usage: DiskUsage = {
    filesystem,
    usedPercent: shortage.usedPercent,
    inodesUsedPercent: inodes === null ? null : usedPercent(inodes),
    highPercent,
    lowPercent,
  };
  const notes = checked.clamped ? [{ kind: "clamped" as const, path }] : [];
  return { usage: [usage], blocks: [], targets, notes };
}

/** Without a low threshold: five points below the high one, like the defaults for space. */
const INODE_LOW_BELOW_HIGH = 5;

function inodeTargets(filesystem: Filesystem, limits: ImageLimits): readonly ImageTarget[] {
  const { inodeHighPercent: high } = limits;
  const inodes = checkedInodes(filesystem);
  if (high === null || inodes === null) return [];
  const low = limits.inodeLowPercent ?? Math.max(0, high - INODE_LOW_BELOW_HIGH);
  const shortage = shortageOf(inodes, { high, low });
  if (!shortage.triggered) return [];
  return [
    {
      kind: "free-inodes",
      trigger: { kind: "inodes" },
      device: filesystem.device,
      path: filesystem.path,
      inodesFree: shortage.target,
      wantedInodes: shortage.wanted,
      relievedInodes: shortage.relieved,
    },
  ];
}
