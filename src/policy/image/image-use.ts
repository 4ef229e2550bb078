/** The bytes that the runtime reports for images on a filesystem, if plausible. */
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";

/** `null`: the runtime reports no figure, or an implausible one. */
export interface ImageUse {
  readonly bytes: bigint | null;
  readonly inodes: bigint | null;
}

const NO_FIGURE: ImageUse = { bytes: null, inodes: null };

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
  if (used > 0n && used * PLAUSIBLE_FACTOR < largestOf(images)) return NO_FIGURE;
  return { bytes: positiveOf(bytes), inodes: positiveOf(inodes) };
}

/** Runtimes report 0 if they did not count. */
const positiveOf = (figure: bigint | null): bigint | null =>
  figure !== null && figure > 0n ? figure : null;

const largestOf = byObject((images: Snapshot["images"]): bigint =>
  images.reduce((most, { sizeBytes }) => (sizeBytes > most ? sizeBytes : most), 0n),
);
