/** What is on a disk: the runtime's figures for images, what fills a filesystem, and what images take by decision and repository. */

import type { DiskBreakdown, ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { ImageShare, ImageUsage } from "../model/reports.ts";
import type { Filesystem, Snapshot } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { atLeastZero, compared, smaller } from "../model/values.ts";
import type { Ranked } from "./image/rank.ts";
import { distinctImages, repositoryOfImage } from "./image/reference.ts";
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

/** With what is reserved for root. */
export const inUseOf = ({ capacityBytes, availableBytes }: Filesystem): bigint =>
  atLeastZero(capacityBytes - availableBytes);

/** The images of a node and what is known of their layers. */
export interface DiskFacts extends Pick<Snapshot, "images" | "filesystems"> {
  readonly layers: Layers;
}

/** What fills the disk, as far as known; the parts never add up to more than the usage. */
export function breakdownOf(filesystem: Filesystem, facts: DiskFacts): DiskBreakdown {
  const { capacityBytes, availableBytes, containerUsedBytes } = filesystem;
  const { freeBytes = availableBytes } = filesystem;
  const usedBytes = atLeastZero(capacityBytes - freeBytes);
  let unexplained = usedBytes;
  const share = (bytes: bigint): bigint => {
    const part = smaller(atLeastZero(bytes), unexplained);
    unexplained -= part;
    return part;
  };
  const imagesBytes = share(imageBytesOf(filesystem, facts));
  const containersBytes = containerUsedBytes === null ? null : share(containerUsedBytes);
  return {
    capacityBytes,
    availableBytes,
    usedBytes,
    imagesBytes,
    containersBytes,
    otherBytes: unexplained,
  };
}

/**
 * What images take. containerd's figure covers their snapshots without the compressed blobs, which take no more than the
 * snapshots, and no more than the sizes that it reports.
 */
function imageBytesOf(filesystem: Filesystem, facts: DiskFacts): bigint {
  const bySizes = facts.layers.sizeOf(distinctImages(facts.images, "any"));
  const used = imageUseOf(filesystem, facts).bytes;
  return used === null ? bySizes : used + smaller(bySizes, used);
}

// By decision and repository

export interface ImageUsageFacts {
  readonly plan: Pick<ImagePlan, "candidates" | "kept">;
  readonly layers: Layers;
  /** All that is in use on the filesystems with images: no group takes more. */
  readonly inUseBytes: bigint;
}

/** Groups every image of a plan; the groups of a view come largest first. */
export function imageUsage(facts: ImageUsageFacts): ImageUsage {
  const subjects = subjectsOf(facts.plan);
  const by = (nameOf: (subject: Subject) => string | null): readonly ImageShare[] =>
    Array.from(Map.groupBy(subjects, nameOf), ([name, group]) =>
      shareOf(name, group, facts),
    ).toSorted(bySize);
  return {
    total: shareOf(null, subjects, facts),
    byState: by((subject) => (isRemovable(subject) ? "removable" : subject.reason.kind)),
    byRepository: by(({ image }) => repositoryOfImage(image)),
  };
}

interface Subject extends Ranked {
  readonly reason: ImageKeepReason;
}

const subjectsOf = ({ candidates, kept }: ImageUsageFacts["plan"]): readonly Subject[] => [
  ...candidates.map((one) => ({ ...one, reason: { kind: "no-trigger" as const } })),
  ...kept,
];

/** Images that only a missing trigger, or a condition of the whole pass, keeps are removable. */
const isRemovable = ({ reason: { kind } }: Subject): boolean =>
  kind === "no-trigger" || kind === "blocked" || kind === "changed";

function shareOf(
  name: string | null,
  group: readonly Subject[],
  { layers, inUseBytes }: Pick<ImageUsageFacts, "layers" | "inUseBytes">,
): ImageShare {
  const removals = layers.removals();
  let uniqueBytes = 0n;
  let reportedBytes = 0n;
  for (const { image } of group) {
    uniqueBytes += removals.remove(image.id) ?? image.sizeBytes;
    reportedBytes += image.sizeBytes;
  }
  const uses: readonly Instant[] = group.flatMap(({ record }) => record.lastUsedAt ?? []);
  const allBytes = layers.sizeOf(group.map(({ image }) => image));
  return {
    name,
    images: group.length,
    removable: group.filter(isRemovable).length,
    reportedBytes,
    uniqueBytes: smaller(uniqueBytes, inUseBytes),
    sharedBytes: smaller(atLeastZero(allBytes - uniqueBytes), inUseBytes),
    lastUsedAt: uses.toSorted(compared).at(-1) ?? null,
  };
}

/** Names of a view are distinct; the group without a name comes last. */
const bySize = (one: ImageShare, other: ImageShare): number =>
  compared(other.uniqueBytes, one.uniqueBytes) ||
  compared(other.reportedBytes, one.reportedBytes) ||
  Number(one.name === null) - Number(other.name === null) ||
  compared(one.name ?? "", other.name ?? "");
