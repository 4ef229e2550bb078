/** Decides whether removing images can relieve a disk at all. If even an upper bound is too small, none is removed. */
import type { ImageId } from "../../model/ids.ts";
import type { Bounds, DiskBreakdown, Futility, ImageTarget } from "../../model/plan.ts";
import type { ImageUser } from "../../model/reason.ts";
import { type Filesystem, type Image, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import { distinctImages } from "../image/image-index.ts";
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
  if (unit === "inodes")
    return used === null ? null : used + INODES_BESIDE_LAYERS * atLeastZero(unused);
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

export type FutilityFacts = Pick<Snapshot, "images" | "filesystems" | "logs"> & {
  readonly users: ReadonlyMap<ImageId, readonly ImageUser[]>;
  readonly layers: KnownLayers | null;
};

/** Judges one target before the pass begins; `null` if it cannot be judged. */
export function futilityOf(
  target: DiskTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility | null {
  const unit = unitOf(target);
  const images = facts.images.filter(({ id }) => !facts.users.has(id));
  const unused = new UnusedImages(images, facts.layers?.forest ?? null);
  const bound = boundOf(unit, {
    used: imageUseOf(filesystem, facts)[unit],
    unused: unit === "bytes" ? unused.bytesAfter([]) : BigInt(images.length),
    mostPerMille: facts.layers !== null && unused.hasLayers ? facts.layers.mostPerMille : null,
    inUse: inUseOf(filesystem),
  });
  const needed = atLeastZero(relievedOf(target) - freeOf(filesystem, unit));
  return bound === null ? null : futilityIn({ unit, filesystem, bound, needed, facts });
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

export const inUseOf = ({ capacityBytes, availableBytes }: Filesystem): bigint =>
  atLeastZero(capacityBytes - availableBytes);

/**
 * The most that removing images frees, in reported sizes: each layer once, at the upper end of its bounds, and none that
 * another image has: layers of a used image remain, however many unused images have them too.
 */
export class UnusedImages {
  readonly count: number;
  /** Whether the layers of any of them are known. */
  readonly hasLayers: boolean;
  readonly #forest: LayerForest | null;
  #images: readonly Image[];
  /** For each place in the order of removal, what is left from there on. */
  #left: readonly bigint[];

  constructor(images: readonly Image[], forest: LayerForest | null) {
    this.count = images.length;
    this.hasLayers = forest !== null && images.some(({ id }) => forest.has(id));
    this.#forest = forest;
    this.#images = images;
    this.#left = this.#leftFrom();
  }

  /** What is left after these removals; cheap as long as they follow the order in which the images were given. */
  bytesAfter(removed: readonly ImageId[]): bigint {
    if (removed.some((id, at) => this.#images[at]?.id !== id)) {
      const gone = new Map(removed.map((id, at) => [id, at]));
      const place = ({ id }: Image): number => gone.get(id) ?? removed.length;
      this.#images = this.#images.toSorted((one, other) => place(one) - place(other));
      this.#left = this.#leftFrom();
    }
    return this.#left[removed.length] ?? 0n;
  }

  #leftFrom(): readonly bigint[] {
    const removals = this.#forest?.removals();
    const frees = this.#images.map(
      ({ id, sizeBytes }) => removals?.remove(id)?.upperBytes ?? sizeBytes,
    );
    let sum = 0n;
    return frees
      .toReversed()
      .map((bytes) => (sum += bytes))
      .toReversed();
  }
}

/** All in the target's unit; `used` as it was when the plan was made, `unused` what still exists, `inUse` now. */
export interface Remaining extends Bound {
  readonly target: DiskTarget;
  /** As measured after the removal. */
  readonly free: bigint;
  /** What the pass has gained on this filesystem so far. */
  readonly gained: bigint;
}

/** Judges again after a removal: whether the rest could still end what triggered the target. */
export function stillUseful({ target, free, gained, ...given }: Remaining): boolean {
  const used = given.used === null ? null : atLeastZero(given.used - gained);
  const bound = boundOf(unitOf(target), { ...given, used });
  return bound === null || free + bound >= relievedOf(target);
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
