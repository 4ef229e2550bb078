/** Decides whether removing images can relieve a disk at all. If even an upper bound is too small, none is removed. */
import type { ImageId } from "../../model/ids.ts";
import type { DiskBreakdown, Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageUser } from "../../model/reason.ts";
import { type Filesystem, type Image, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { atLeastZero } from "../../model/values.ts";
import { type ImageUse, imageUseOf } from "../image/image-use.ts";
import type { LayerForest } from "../layer/layers.ts";

/**
 * The most that an image can take on disk, as a multiple of its reported size: runtimes report compressed sizes, and
 * 1.05 to 4 times was measured.
 */
export const BYTES_PER_REPORTED_BYTE = 5n;

/** Inodes of an image besides its layers' files: blobs, directories, metadata, which `inodes_used` omits on containerd. */
const INODES_BESIDE_LAYERS = 32n;

/** A target on a filesystem, in bytes or in inodes. */
export type DiskTarget = Extract<ImageTarget, { readonly device: string }>;
export type Unit = keyof ImageUse;
export const unitOf = ({ kind }: DiskTarget): Unit =>
  kind === "available-bytes" ? "bytes" : "inodes";

export interface Bound {
  /** What the runtime reports for its images; `null`: no figure. */
  readonly used: bigint | null;
  /** For the unused images: their reported sizes added up, or their number. */
  readonly unused: bigint;
}

/** The most that removing every unused image could free; `null` for inodes that the runtime does not count. */
export function boundOf(unit: Unit, { used, unused }: Bound): bigint | null {
  if (unit === "bytes") return used === null ? BYTES_PER_REPORTED_BYTE * unused : used + unused;
  return used === null ? null : used + INODES_BESIDE_LAYERS * atLeastZero(unused);
}

export type FutilityFacts = Pick<Snapshot, "images" | "filesystems" | "logs"> & {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  /** Shared layers, if they matter; `null` if unknown. */
  readonly forest?: LayerForest | null;
};

/** Judges one target before the pass begins; `null` if it cannot be judged. */
export function futilityOf(
  target: DiskTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility | null {
  const unit = unitOf(target);
  const unused = facts.images.filter(({ id }) => !facts.users.has(id));
  const bound = boundOf(unit, {
    used: imageUseOf(filesystem, facts)[unit],
    // Layers of a used image remain, however many unused images have them too.
    unused: unit === "bytes" ? mostFreed(unused, facts.forest ?? null) : BigInt(unused.length),
  });
  const needed = atLeastZero(relievedOf(target) - freeOf(filesystem, unit));
  return bound === null ? null : futilityIn({ unit, filesystem, bound, needed, facts });
}

/** Removals freed nothing there, and the disk has not changed since: the bound is 0. */
export function noGainFutility(
  target: DiskTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility {
  const needed = target.kind === "available-bytes" ? target.wantedBytes : target.wantedInodes;
  const nothing = { unit: unitOf(target), filesystem, bound: 0n, needed, facts };
  return { ...futilityIn(nothing), futile: true };
}

function futilityIn(of: {
  readonly unit: Unit;
  readonly filesystem: Filesystem;
  readonly bound: bigint;
  readonly needed: bigint;
  readonly facts: FutilityFacts;
}): Futility {
  const { unit, filesystem, bound, needed } = of;
  const inBytes = unit === "bytes";
  return {
    filesystem: filesystem.path,
    boundBytes: inBytes ? bound : 0n,
    neededBytes: inBytes ? needed : 0n,
    futile: bound < needed,
    ...(inBytes
      ? {}
      : { inodes: { bound, needed, free: filesystem.inodesFree, capacity: filesystem.inodes } }),
    breakdown: breakdownOf(filesystem, of.facts),
  };
}

const relievedOf = (target: DiskTarget): bigint =>
  target.kind === "available-bytes" ? target.relievedBytes : target.relievedInodes;

const freeOf = ({ availableBytes, inodesFree }: Filesystem, unit: Unit): bigint =>
  unit === "bytes" ? availableBytes : inodesFree;

/** The most that removing these images frees, in reported sizes: each layer once, and none that another image has. */
function mostFreed(images: readonly Image[], forest: LayerForest | null): bigint {
  if (forest === null) return reportedBytes(images);
  const removals = forest.removals();
  return images.reduce(
    (sum, { id, sizeBytes }) => sum + (removals.remove(id)?.upperBytes ?? sizeBytes),
    0n,
  );
}

/** All in the target's unit; `used` as it was when the plan was made, `unused` what still exists. */
export interface Remaining extends Bound {
  readonly target: DiskTarget;
  /** As measured after the removal. */
  readonly free: bigint;
  /** What the pass has gained on this filesystem so far. */
  readonly gained: bigint;
}

/** Judges again after a removal: whether the rest could still end what triggered the target. */
export function stillUseful({ target, free, used, gained, unused }: Remaining): boolean {
  const left = used === null ? null : atLeastZero(used - gained);
  const bound = boundOf(unitOf(target), { used: left, unused });
  return bound === null || free + bound >= relievedOf(target);
}

/** What fills the disk, as far as known; the parts never add up to more than the usage. */
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
  const imagesBytes = share(mostBytesOf(imageUseOf(filesystem, facts).bytes, facts.images));
  const containersBytes = containerUsedBytes === null ? null : share(containerUsedBytes);
  // Pod logs are on the node's own filesystem.
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

/**
 * The most that images take. containerd's figure covers their snapshots without the compressed blobs, which take no
 * more than the snapshots, and no more than the sizes that it reports.
 */
function mostBytesOf(used: bigint | null, images: readonly Image[]): bigint {
  const reported = reportedBytes(images);
  if (used === null) return reported;
  return used + (reported < used ? reported : used);
}

/** How many percent the bound or the disk has to change to count as another state. */
const TELLING_POINTS = 2n;

/** Whether the state of a disk has changed enough to report it again; a rotated file does not count. */
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
    // That nothing at all is left to gain is not news about a disk that images could not relieve before.
    (after.boundBytes > 0n && apart(before.boundBytes, after.boundBytes, capacityBytes)) ||
    apart(before.breakdown.availableBytes, availableBytes, capacityBytes)
  );
}

/** Whether two amounts differ by at least two percent of the capacity. */
export function apart(one: bigint, other: bigint, capacity: bigint): boolean {
  const distance = one > other ? one - other : other - one;
  return distance > 0n && 100n * distance >= TELLING_POINTS * capacity;
}

export const reportedBytes = (images: readonly Image[]): bigint =>
  images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
