/** What is on a disk: the runtime's figures for images, and what fills a filesystem. */
import type { DiskBreakdown } from "../model/plan.ts";
import { type Filesystem, logFactsOf, type Snapshot } from "../model/snapshot.ts";
import { atLeastZero, smaller } from "../model/values.ts";
import { distinctImages } from "./image/image-index.ts";
import type { Layers } from "./layers.ts";

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

/** The images of a node and what is known of their layers, and its logs. */
export interface DiskFacts extends Pick<Snapshot, "images" | "filesystems" | "logs"> {
  readonly layers: Layers;
}

/** What fills the disk, as far as known; the parts never add up to more than the usage. */
export function breakdownOf(filesystem: Filesystem, facts: DiskFacts): DiskBreakdown {
  const { capacityBytes, availableBytes, containerUsedBytes, roles } = filesystem;
  let unexplained = inUseOf(filesystem);
  const share = (bytes: bigint): bigint => {
    const part = smaller(atLeastZero(bytes), unexplained);
    unexplained -= part;
    return part;
  };
  const imagesBytes = share(imageBytesOf(filesystem, facts));
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
 * What images take. containerd's figure covers their snapshots without the compressed blobs, which take no more than the
 * snapshots, and no more than the sizes that it reports.
 */
function imageBytesOf(filesystem: Filesystem, facts: Omit<DiskFacts, "logs">): bigint {
  const bySizes = facts.layers.sizeOf(distinctImages(facts.images, "any"));
  const used = imageUseOf(filesystem, facts).bytes;
  return used === null ? bySizes : used + smaller(bySizes, used);
}
