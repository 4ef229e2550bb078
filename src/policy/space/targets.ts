/** The triggers of a periodic image pass and their targets: space, inodes, a budget, a number of images. */
import type { Compat, ImageLimits } from "../../model/limits.ts";
import type { DiskUsage, ImageTarget, PlanNote } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Filesystem, Image, Snapshot } from "../../model/snapshot.ts";
import { distinctImages } from "../image/image-index.ts";
import type { LayerForest } from "../layer/layers.ts";

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

/** Without a low threshold for inodes: five points below the high one, like the defaults for space. */
const INODE_LOW_BELOW_HIGH = 5;

function judgeDisk(filesystem: Filesystem, limits: ImageLimits): DiskJudgement {
  const { highPercent, lowPercent, compat, inodeHighPercent } = limits;
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
  // With `compat: kubelet`, the loop decides whether a pass runs at all.
  if (usage.usedPercent >= highPercent && (compat === "kubelet" || watchesSpace(limits))) {
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
  if (inodes !== null && inodeHighPercent !== null && usedPercent(inodes) >= inodeHighPercent) {
    const low = limits.inodeLowPercent ?? Math.max(0, inodeHighPercent - INODE_LOW_BELOW_HIGH);
    const { target, wanted, relieved } = shortageOf(inodes, inodeHighPercent, low);
    targets.push({
      kind: "free-inodes",
      trigger: { kind: "inodes" },
      device,
      path,
      inodesFree: target,
      wantedInodes: wanted,
      relievedInodes: relieved,
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
  watchesSpace(limits) ||
  limits.inodeHighPercent !== null ||
  limits.storeBudgetBytes !== null ||
  limits.maximumImages !== null;

/** Targets independent of a filesystem's thresholds: the size of the store, and the number of images. */
export function storeTargets(
  snapshot: Pick<Snapshot, "filesystems" | "images">,
  { storeBudgetBytes: maximumBytes, maximumImages }: ImageLimits,
  forest: LayerForest | null,
): readonly ImageTarget[] {
  const targets: ImageTarget[] = [];
  const images = distinctImages(snapshot.images, "any");
  if (maximumBytes !== null) {
    // Without the runtime's figure, the reported sizes; each layer once where layers matter.
    const estimate = forest?.union(images).estimateBytes ?? reportedBytes(images);
    const wantedBytes = (countedStoreBytes(snapshot) ?? estimate) - maximumBytes;
    const trigger = { kind: "budget" } as const;
    if (wantedBytes > 0n) targets.push({ kind: "store-bytes", trigger, maximumBytes, wantedBytes });
  }
  if (maximumImages !== null && images.length > maximumImages) {
    const wantedImages = images.length - maximumImages;
    targets.push({ kind: "image-count", trigger: { kind: "count" }, maximumImages, wantedImages });
  }
  return targets;
}

export const reportedBytes = (images: readonly Image[]): bigint =>
  images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);

/** The runtime's figure for the image store, of all filesystems that hold images; `null` if it gives none. */
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

/** What the runtime reports for images on a filesystem; `null`: nothing, or an implausible figure. */
export interface ImageUse {
  readonly bytes: bigint | null;
  readonly inodes: bigint | null;
}

/** The total may be this many times smaller than a single image: filesystems compress, and sizes are rounded. */
const PLAUSIBLE_FACTOR = 4n;

/**
 * CRI-O 1.37 measures a directory of metadata: 65 KB where the store held 257 MB. Because images share layers, the
 * total may be far below the sum of their sizes, but not below the size of the largest.
 */
export function imageUseOf(
  { imageUsedBytes: bytes, imageInodesUsed: inodes = null }: Filesystem,
  { images, filesystems }: Pick<Snapshot, "images" | "filesystems">,
): ImageUse {
  const used = filesystems.reduce((sum, one) => sum + (one.imageUsedBytes ?? 0n), 0n);
  if (used > 0n && images.some(({ sizeBytes }) => used * PLAUSIBLE_FACTOR < sizeBytes))
    return { bytes: null, inodes: null };
  return { bytes: positiveOf(bytes), inodes: positiveOf(inodes) };
}

/** Runtimes report 0 if they did not count. */
const positiveOf = (figure: bigint | null): bigint | null =>
  figure !== null && figure > 0n ? figure : null;
