/** What is on a disk: the runtime's figures for images, and what fills a filesystem. */
import type { Bounds, DiskBreakdown } from "../../model/plan.ts";
import { type Filesystem, type Image, logFactsOf, type Snapshot } from "../../model/snapshot.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import { distinctImages } from "../image/image-index.ts";
import type { LayerForest } from "../layer/layers.ts";

/**
 * The most that an image can take on disk, as a multiple of its reported size: runtimes report compressed sizes, and
 * 1.05 to 4 times was measured.
 */
export const BYTES_PER_REPORTED_BYTE = 5n;

export const reportedBytesOf = (images: readonly Image[]): bigint =>
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

/** CRI-O 1.37 records an image in 1.2 KiB and each layer in 0.6 KiB. */
const RECORD_BYTES = 16_384n;
/** Added as a margin; and the free inodes for its new files. */
export const RECORDS_BESIDES = 16;

/**
 * Free bytes that a removal needs, because CRI-O rewrites its lists of images, layers and mounts. Without them it drops the
 * image from its list and never deletes the layers.
 */
export const roomToRecord = ({ runtime }: Pick<Snapshot, "runtime">, records: number): bigint =>
  runtime.name.toLowerCase() === "cri-o" ? RECORD_BYTES * BigInt(records + RECORDS_BESIDES) : 0n;

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

export const inUseOf = ({ capacityBytes, availableBytes }: Filesystem): bigint =>
  atLeastZero(capacityBytes - availableBytes);

/** The layers of a node's images, where they matter, and what the node has taught about their sizes. */
export interface KnownLayers {
  readonly forest: LayerForest;
  /** The most that a thousand reported bytes take on disk. */
  readonly mostPerMille: bigint;
}

/** The images of a node and what is known of their layers, and its logs. */
export interface DiskFacts extends Pick<Snapshot, "images" | "filesystems" | "logs"> {
  /** `null`: they do not matter. */
  readonly layers: KnownLayers | null;
}

/** What fills the disk, as far as known; the parts never add up to more than the usage. */
export function breakdownOf(filesystem: Filesystem, facts: DiskFacts): DiskBreakdown {
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
  facts: Omit<DiskFacts, "logs">,
): Pick<Bounds, "lowerBytes" | "upperBytes"> {
  const images = distinctImages(facts.images, "any");
  const forest = facts.layers?.forest ?? null;
  const used = imageUseOf(filesystem, facts).bytes;
  const all = forest?.union(images).upperBytes ?? reportedBytesOf(images);
  if (used !== null) return { lowerBytes: used, upperBytes: used + smaller(all, used) };
  const known = images.filter(({ id }) => forest?.has(id) === true);
  return { lowerBytes: forest?.union(known).lowerBytes ?? 0n, upperBytes: all };
}
