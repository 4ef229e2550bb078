/** Whether removing images can help a disk at all: if not even an upper bound reaches far enough, none is removed. */
import type { ImageId } from "../../model/ids.ts";
import type { DiskBreakdown, Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageUser } from "../../model/reason.ts";
import { type Filesystem, type Image, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { imageUseOf } from "../image/image-use.ts";
import type { LayerForest } from "../layer/layers.ts";

/** How many times its reported size an image can take on disk: runtimes report compressed sizes, 1.05 to 4 times was measured. */
export const BYTES_PER_REPORTED_BYTE = 5n;

export type SpaceTarget = Extract<ImageTarget, { readonly kind: "available-bytes" }>;

export interface Bound {
  /** `used_bytes` of the image filesystem; `null`: no figure. */
  readonly imageUsedBytes: bigint | null;
  /** Reported sizes of all images that nothing uses, added up. */
  readonly unusedReportedBytes: bigint;
}

/** The most that removing every unused image could free. */
export function boundBytes({ imageUsedBytes, unusedReportedBytes }: Bound): bigint {
  return imageUsedBytes === null
    ? BYTES_PER_REPORTED_BYTE * unusedReportedBytes
    : imageUsedBytes + unusedReportedBytes;
}

/** What a bound is made from. */
export type FutilityFacts = Pick<Snapshot, "images" | "filesystems" | "logs"> & {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** What images share, where layers have a say; `null`: that is not known. */
  readonly forest?: LayerForest | null;
};

/** Judges one target before the pass begins. */
export function futilityOf(
  target: SpaceTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility {
  const unused = facts.images.filter(({ id }) => !facts.users.has(id));
  const bound = boundBytes({
    imageUsedBytes: imageUseOf(filesystem, facts).bytes,
    // Layers that a used image has stay, however many unused images have them, too.
    unusedReportedBytes: mostFreed(unused, facts.forest ?? null),
  });
  const needed = atLeastZero(target.relievedBytes - filesystem.availableBytes);
  return {
    filesystem: filesystem.path,
    boundBytes: bound,
    neededBytes: needed,
    futile: bound < needed,
    breakdown: breakdownOf(filesystem, facts),
  };
}

/** The most that removing these images frees, in reported sizes: each layer once, and none that another image has. */
function mostFreed(images: readonly Image[], forest: LayerForest | null): bigint {
  if (forest === null) return reportedBytes(images);
  const removals = forest.removals();
  return images.reduce(
    (sum, { id, sizeBytes }) => sum + (removals.remove(id)?.upperBytes ?? sizeBytes),
    0n,
  );
}

export interface Remaining {
  readonly target: SpaceTarget;
  /** As measured after the removal. */
  readonly availableBytes: bigint;
  /** As it was when the plan was made. */
  readonly imageUsedBytes: bigint | null;
  /** What the pass has gained on this filesystem so far. */
  readonly gainedBytes: bigint;
  /** Reported sizes of the unused images that are still there, added up. */
  readonly unusedReportedBytes: bigint;
}

/** Judges again after a removal: whether what is left could still end what the target stands for. */
export function stillUseful(remaining: Remaining): boolean {
  const { imageUsedBytes, gainedBytes } = remaining;
  const bound = boundBytes({
    imageUsedBytes: imageUsedBytes === null ? null : atLeastZero(imageUsedBytes - gainedBytes),
    unusedReportedBytes: remaining.unusedReportedBytes,
  });
  return remaining.availableBytes + bound >= remaining.target.relievedBytes;
}

/** What fills the disk, as far as it can be told; the parts never add up to more than is used. */
export function breakdownOf(
  filesystem: Filesystem,
  facts: Pick<Snapshot, "images" | "filesystems" | "logs">,
): DiskBreakdown {
  const { capacityBytes, availableBytes, containerUsedBytes, roles } = filesystem;
  let unexplained = atLeastZero(capacityBytes - availableBytes);
  const share = (bytes: bigint): bigint => {
    const part = bytes < 0n ? 0n : bytes < unexplained ? bytes : unexplained;
    unexplained -= part;
    return part;
  };
  const imagesBytes = share(imageUseOf(filesystem, facts).bytes ?? reportedBytes(facts.images));
  const containersBytes = containerUsedBytes === null ? null : share(containerUsedBytes);
  // Pod logs lie on the node's own filesystem.
  const logs = roles.includes("nodefs") ? (logFactsOf(facts.logs)?.sizeBytes ?? null) : null;
  const logsBytes = logs === null ? null : share(logs);
  return {
    capacityBytes,
    availableBytes,
    imagesBytes,
    containersBytes,
    logsBytes,
    otherBytes: unexplained,
  };
}

/** Points of a hundred by which the bound or the disk has to differ to be another state. */
const TELLING_POINTS = 2n;

/** Whether there is something new to say of a disk: a file that is written and rotated away does not make another state. */
export function futilityDiffers(before: Futility, after: Futility): boolean {
  if (before.inodes !== undefined && after.inodes !== undefined) {
    const { capacity } = after.inodes;
    return (
      (after.inodes.bound > 0n && apart(before.inodes.bound, after.inodes.bound, capacity)) ||
      apart(before.inodes.free, after.inodes.free, capacity)
    );
  }
  const { capacityBytes, availableBytes } = after.breakdown;
  return (
    // That nothing at all is left to gain is no news of a disk that images could not help before.
    (after.boundBytes > 0n && apart(before.boundBytes, after.boundBytes, capacityBytes)) ||
    apart(before.breakdown.availableBytes, availableBytes, capacityBytes)
  );
}

/** Whether two amounts lie at least two percent of the capacity apart. */
export function apart(one: bigint, other: bigint, capacity: bigint): boolean {
  const distance = one > other ? one - other : other - one;
  return distance > 0n && 100n * distance >= TELLING_POINTS * capacity;
}

export const reportedBytes = (images: readonly Image[]): bigint =>
  images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);

const atLeastZero = (bytes: bigint): bigint => (bytes > 0n ? bytes : 0n);
