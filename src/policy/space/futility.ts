/** Decides whether removing images can relieve a disk at all. If even an upper bound is too small, none is removed. */
import type { ImageId } from "../../model/ids.ts";
import type { Bounds, DiskBreakdown, Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageUser } from "../../model/reason.ts";
import { type Filesystem, type Image, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import { distinctImages } from "../image/image-index.ts";
import type { LayerForest } from "../layer/layers.ts";
import { type ImageUse, imageUseOf, reportedBytes } from "./targets.ts";

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

export const relievedOf = (target: DiskTarget): bigint =>
  target.kind === "available-bytes" ? target.relievedBytes : target.relievedInodes;

export interface Bound {
  /** What the runtime reports for its images; `null`: no figure. */
  readonly used: bigint | null;
  /** For the unused images: their reported sizes added up, each known layer once; or their number. */
  readonly unused: bigint;
  /** The most that a thousand bytes of these take; `null`: their layers are unknown, or inodes are short. */
  readonly mostPerMille: bigint | null;
  /** All that is in use on the filesystem. */
  readonly inUse: bigint;
}

/** The most that removing every unused image could free; `null` for inodes that the runtime does not count. */
export function boundOf(unit: Unit, bound: Bound): bigint | null {
  const { used, unused, mostPerMille, inUse } = bound;
  if (unit === "inodes") return used === null ? null : used + INODES_BESIDE_LAYERS * unused;
  const byFigure = used === null ? BYTES_PER_REPORTED_BYTE * unused : used + unused;
  if (mostPerMille === null) return smaller(byFigure, inUse);
  const byLayers = (unused * mostPerMille) / 1000n;
  return smaller(used === null ? byLayers : smaller(byFigure, byLayers), inUse);
}

/** The layers of a node's images, where they matter, and what the node has taught about their sizes. */
export interface KnownLayers {
  readonly forest: LayerForest;
  /** The most that a thousand reported bytes take on disk. */
  readonly mostPerMille: bigint;
}

/** What is judged beside the target and its filesystem. */
export interface FutilityFacts extends Pick<Snapshot, "images" | "filesystems" | "logs"> {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  readonly layers: KnownLayers | null;
}

/** Judges one target before the pass begins; `null` if it cannot be judged. */
export function futilityOf(
  target: DiskTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility | null {
  const unit = unitOf(target);
  const images = facts.images.filter(({ id }) => !facts.users.has(id));
  const { inodesFree: free, inodes: capacity } = filesystem;
  const bound = boundOf(unit, {
    used: imageUseOf(filesystem, facts)[unit],
    unused:
      unit === "bytes"
        ? bytesAfter(images, facts.layers?.forest ?? null)([])
        : BigInt(images.length),
    mostPerMille: mostOf(images, facts.layers),
    inUse: inUseOf(filesystem),
  });
  if (bound === null) return null;
  const needed = atLeastZero(
    relievedOf(target) - (unit === "bytes" ? filesystem.availableBytes : free),
  );
  const inBytes = unit === "bytes";
  return {
    filesystem: filesystem.path,
    boundBytes: inBytes ? bound : 0n,
    neededBytes: inBytes ? needed : 0n,
    futile: bound < needed,
    ...(inBytes ? {} : { inodes: { bound, needed, free, capacity } }),
    breakdown: breakdownOf(filesystem, facts),
  };
}

export const inUseOf = ({ capacityBytes, availableBytes }: Filesystem): bigint =>
  atLeastZero(capacityBytes - availableBytes);

/** The most that a thousand reported bytes of these images take; `null` if none of their layers is known. */
export const mostOf = (images: readonly Image[], layers: KnownLayers | null): bigint | null =>
  layers !== null && images.some(({ id }) => layers.forest.has(id)) ? layers.mostPerMille : null;

/**
 * The most that removing images frees once some were removed, in reported sizes: each layer once, at the upper end of
 * its bounds, and none that another image has: layers of a used image remain, however many unused images have them too.
 * Cheap as long as the removals follow the order in which the images were given.
 */
export function bytesAfter(
  images: readonly Image[],
  forest: LayerForest | null,
): (removed: readonly ImageId[]) => bigint {
  let order = images;
  let left = leftFrom(order, forest);
  return (removed) => {
    if (removed.some((id, at) => order[at]?.id !== id)) {
      const places = new Map(removed.map((id, at) => [id, at]));
      const place = ({ id }: Image): number => places.get(id) ?? removed.length;
      order = order.toSorted((one, other) => place(one) - place(other));
      left = leftFrom(order, forest);
    }
    return left[removed.length] ?? 0n;
  };
}

/** For each place in the order of removal, what is left from there on. */
function leftFrom(order: readonly Image[], forest: LayerForest | null): readonly bigint[] {
  const removals = forest?.removals();
  const frees = order.map(({ id, sizeBytes }) => removals?.remove(id)?.upperBytes ?? sizeBytes);
  let sum = 0n;
  return frees
    .toReversed()
    .map((bytes) => (sum += bytes))
    .toReversed();
}

/** What fills the disk, as far as known; the parts never add up to more than the usage. */
export function breakdownOf(
  filesystem: Filesystem,
  facts: Pick<Snapshot, "images" | "filesystems" | "logs"> & Pick<FutilityFacts, "layers">,
): DiskBreakdown {
  const { capacityBytes, availableBytes, containerUsedBytes, roles } = filesystem;
  let unexplained = inUseOf(filesystem);
  const share = (bytes: bigint): bigint => {
    const part = bytes < 0n ? 0n : bytes < unexplained ? bytes : unexplained;
    unexplained -= part;
    return part;
  };
  const images = imageBytesOf(filesystem, facts);
  const imagesBytes = share(images.upperBytes);
  const containersBytes = containerUsedBytes === null ? null : share(containerUsedBytes);
  // Pod logs are on the node's own filesystem.
  const logs = roles.includes("nodefs") ? (logFactsOf(facts.logs)?.sizeBytes ?? null) : null;
  const logsBytes = logs === null ? null : share(logs);
  return {
    capacityBytes,
    availableBytes,
    imagesBytes,
    imagesAtLeastBytes: smaller(images.lowerBytes, imagesBytes),
    containersBytes,
    logsBytes,
    otherBytes: unexplained,
  };
}

/**
 * What images take. containerd's figure covers their snapshots without the compressed blobs, which take no more than the
 * snapshots, and no more than the sizes that it reports.
 */
function imageBytesOf(
  filesystem: Filesystem,
  facts: Pick<Snapshot, "images" | "filesystems"> & Pick<FutilityFacts, "layers">,
): Pick<Bounds, "lowerBytes" | "upperBytes"> {
  const images = distinctImages(facts.images, "any");
  const forest = facts.layers?.forest ?? null;
  const used = imageUseOf(filesystem, facts).bytes;
  const all = forest?.union(images).upperBytes ?? reportedBytes(images);
  if (used !== null) return { lowerBytes: used, upperBytes: used + smaller(all, used) };
  const known = images.filter(({ id }) => forest?.has(id) === true);
  return { lowerBytes: forest?.union(known).lowerBytes ?? 0n, upperBytes: all };
}

/** How many percent the bound or the disk has to change to count as another state. */
const TELLING_PERCENT = 2n;

/** Whether the state of a disk has changed enough to report it again; a rotated file does not count. */
export function futilityDiffers(before: Futility, after: Futility): boolean {
  if (before.inodes !== undefined && after.inodes !== undefined) {
    const { bound, free, capacity } = after.inodes;
    return (
      (bound > 0n && apart(before.inodes.bound, bound, capacity)) ||
      apart(before.inodes.free, free, capacity)
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
  return distance > 0n && 100n * distance >= TELLING_PERCENT * capacity;
}
