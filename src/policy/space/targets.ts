/** The targets of an image pass: which triggers set them (space, a budget), and when they are met. */
import type { Compat, ImageLimits } from "../../model/limits.ts";
import type { DiskUsage, ImageTarget, PlanNote } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { smaller } from "../../model/values.ts";
import { distinctImages } from "../image/image-index.ts";
import type { LayerForest } from "../layer/layers.ts";
import { countedStoreBytes, reportedBytesOf } from "./disk.ts";

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
    const block = { kind: "invalid-capacity", path: "", message } as const;
    return { usage: [], blocks: [block], targets: [], notes: [] };
  }
  const judged = filesystems.map((filesystem) => judgeDisk(filesystem, limits));
  return {
    usage: judged.flatMap(({ usage }) => usage),
    blocks: judged.flatMap(({ blocks }) => blocks),
    targets: judged.flatMap(({ targets }) => targets),
    notes: judged.flatMap(({ notes }) => notes),
  };
}

export function imageFilesystems(
  { filesystems }: Pick<Snapshot, "filesystems">,
  { compat }: Pick<ImageLimits, "compat">,
): readonly Filesystem[] {
  const those = filesystems.filter(({ roles }) => roles.includes("imagefs"));
  return compat === "kubelet" ? those.slice(0, 1) : those;
}

function judgeDisk(filesystem: Filesystem, limits: ImageLimits): DiskJudgement {
  const { highPercent, lowPercent, compat } = limits;
  const { path, device, capacityBytes: capacity, availableBytes } = filesystem;
  const fault = spaceFault(filesystem, compat);
  if (fault !== null) {
    const block = { kind: "invalid-capacity", path, message: fault } as const;
    return { usage: [], blocks: [block], targets: [], notes: [] };
  }
  const clamped = availableBytes > capacity;
  const space = { capacity, available: clamped ? capacity : availableBytes };
  const inodes = inodeAmounts(filesystem);
  const usage: DiskUsage = {
    filesystem,
    usedPercent: usedPercent(space),
    inodesUsedPercent: inodes === null ? null : usedPercent(inodes),
    highPercent,
    lowPercent,
  };
  const targets: ImageTarget[] = [];
  if (usage.usedPercent >= highPercent) {
    const { target, wanted, relieved } = shortageOf(space, highPercent, lowPercent);
    targets.push({
      kind: "available-bytes",
      trigger: { kind: "space" },
      device,
      path,
      availableBytes: target,
      wantedBytes: wanted,
      relievedBytes: relieved,
    });
  }
  return { usage: [usage], blocks: [], targets, notes: clamped ? [{ kind: "clamped", path }] : [] };
}

/** A filesystem's capacity and what is available, in bytes or in inodes. The capacity is above 0. */
interface Amounts {
  readonly capacity: bigint;
  readonly available: bigint;
}

/** 100 less the whole percent that is available: usage is rounded up, as in the kubelet. */
const usedPercent = ({ capacity, available }: Amounts): number =>
  Number(100n - (100n * available) / capacity);

function shortageOf({ capacity, available }: Amounts, highPercent: number, lowPercent: number) {
  // Multiplies before dividing: the whole part of the share that the low threshold leaves free.
  const target = (capacity * BigInt(100 - lowPercent)) / 100n;
  // Usage is below the high threshold if `100 · available / capacity` reaches `101 - high`; rounded up. With a
  // threshold of 0 this exceeds the capacity: such a disk always triggers.
  const relieved = (capacity * BigInt(101 - highPercent) + 99n) / 100n;
  return { target, wanted: target - available, relieved };
}

/**
 * Why a filesystem's figures are implausible, so that nothing is decided on them; the kubelet treats such a disk as
 * empty. Available may exceed the capacity by a rounding: 4096 bytes or a thousandth of the capacity, whichever is more.
 */
function spaceFault(filesystem: Filesystem, compat: Compat): string | null {
  const { capacityBytes: capacity, availableBytes: available, path } = filesystem;
  if (capacity <= 0n)
    return `the image filesystem at ${path} reports a capacity of ${capacity} bytes`;
  const rounding = capacity / 1000n > 4096n ? capacity / 1000n : 4096n;
  if (available >= 0n && (compat === "kubelet" || available <= capacity + rounding)) return null;
  // Without the figure that differs each time: what lasts is reported once.
  const what = available < 0n ? "less than 0 bytes available" : "more available than its capacity";
  return `the filesystem at ${path} reports ${what}, of ${capacity} bytes`;
}

/** `null` if the filesystem counts no inodes, or reports more free ones than it has. */
function inodeAmounts({ inodes, inodesFree }: Filesystem): Amounts | null {
  if (inodes <= 0n || inodesFree < 0n || inodesFree > inodes) return null;
  return { capacity: inodes, available: inodesFree };
}

/** Whether a threshold on space is in force: 100 without a maximum age turns image GC off, as in the kubelet. */
export const watchesSpace = ({ highPercent, maximumAge }: ImageLimits): boolean =>
  highPercent !== 100 || maximumAge !== 0n;

/** Whether the periodic image GC loop has anything to do with these limits. */
export const collectsImages = (limits: ImageLimits): boolean =>
  watchesSpace(limits) || limits.storeBudgetBytes !== null;

/** The target independent of a filesystem's thresholds: the size of the store. */
export function storeTargets(
  snapshot: Pick<Snapshot, "filesystems" | "images">,
  { storeBudgetBytes: maximumBytes }: ImageLimits,
  forest: LayerForest | null,
): readonly ImageTarget[] {
  if (maximumBytes === null) return [];
  const images = distinctImages(snapshot.images, "any");
  // Without the runtime's figure, the reported sizes; each layer once where layers matter.
  const estimate = forest?.union(images).estimateBytes ?? reportedBytesOf(images);
  const wantedBytes = (countedStoreBytes(snapshot) ?? estimate) - maximumBytes;
  if (wantedBytes <= 0n) return [];
  return [{ kind: "store-bytes", trigger: { kind: "budget" }, maximumBytes, wantedBytes }];
}

/** What a filesystem has free after the latest removal, and what the pass has gained on it. */
interface Room {
  readonly free: bigint;
  readonly gained: bigint;
}

export interface Progress {
  readonly accounting: "measured" | "reported";
  /** By device, of those that were measured. */
  readonly disks: ReadonlyMap<string, Readonly<Record<"bytes" | "inodes", Room>>>;
  /** The size of the image store now; `null`: the runtime does not say, so reported sizes count. */
  readonly storeBytes: bigint | null;
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
  const disk = "device" in target ? progress.disks.get(target.device) : undefined;
  const isReported = accounting === "reported";
  switch (target.kind) {
    case "available-bytes":
      // The kubelet checks only after a removal, so it removes one image even if the target is 0.
      if (isReported) return reached(progress.removed > 0 && reportedBytes >= target.wantedBytes);
      return reachedOn(disk?.bytes, target.availableBytes, target.wantedBytes);
    case "free-inodes":
      return reachedOn(disk?.inodes, target.inodesFree, target.wantedInodes);
    case "store-bytes":
      if (isReported) return reached(reportedBytes >= target.wantedBytes);
      return reached(
        storeBytes === null
          ? estimatedBytes >= target.wantedBytes
          : storeBytes <= target.maximumBytes,
      );
    case "everything":
      return null;
  }
}

const reached = (is: boolean): Met | null => (is ? "target-reached" : null);

/** Own gains end a pass if others write as fast as it frees. */
function reachedOn(room: Room | undefined, target: bigint, wanted: bigint): Met | null {
  if (room === undefined) return null;
  if (room.free >= target) return "target-reached";
  return room.gained > 0n && room.gained >= wanted ? "own-gain-reached" : null;
}

/** The bytes that a target lacks on its disk or in its budget; `null` if it is not about measured bytes. */
export function lackedBytes(target: ImageTarget, progress: Progress): bigint | null {
  if (target.kind === "store-bytes")
    return progress.storeBytes === null ? null : progress.storeBytes - target.maximumBytes;
  if (target.kind !== "available-bytes") return null;
  const { device, availableBytes, wantedBytes } = target;
  const { free, gained } = progress.disks.get(device)?.bytes ?? { free: 0n, gained: 0n };
  return smaller(availableBytes - free, wantedBytes - gained);
}
