/** The bytes that the runtime reports for images on a filesystem, if plausible. */
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { byObject } from "../by-object.ts";

/** `null`: the runtime reports no figure, or an implausible one. */
export interface ImageUse {
  readonly bytes: bigint | null;
  readonly inodes: bigint | null;
}

const NO_FIGURE: ImageUse = { bytes: null, inodes: null };

/** How far below the size of a single image the use of all of them may lie: filesystems compress, and sizes are rounded. */
const PLAUSIBLE_FACTOR = 4n;

/**
 * CRI-O 1.37 measures a directory of metadata: 65 KB where the store held 257 MB. Images share layers, so that the use of all
 * may lie far below the sum of their sizes; below the size of the largest one it cannot.
 */
export function imageUseOf(
  { imageUsedBytes: bytes, imageInodesUsed: inodes = null }: Filesystem,
  { images, filesystems }: Pick<Snapshot, "images" | "filesystems">,
): ImageUse {
  const used = filesystems.reduce((sum, one) => sum + (one.imageUsedBytes ?? 0n), 0n);
  if (used > 0n && used * PLAUSIBLE_FACTOR < largestOf(images)) return NO_FIGURE;
  return { bytes: positiveOf(bytes), inodes: positiveOf(inodes) };
}

/** 0 is how a runtime says that it did not count. */
const positiveOf = (figure: bigint | null): bigint | null =>
  figure !== null && figure > 0n ? figure : null;

const largestOf = byObject((images: Snapshot["images"]): bigint =>
  images.reduce((most, { sizeBytes }) => (sizeBytes > most ? sizeBytes : most), 0n),
);
