/** Whether removing images can help a filesystem that is short of inodes: full of small files of others, it cannot. */

import type { Futility, ImageTarget } from "../../model/plan.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import { imageUseOf } from "../image/image-use.ts";
import { breakdownOf, type FutilityFacts } from "./futility.ts";

/** Of an image beside its layers' files: blobs, directories, metadata, which `inodes_used` leaves out on containerd. */
const INODES_BESIDE_LAYERS = 32n;

export type InodeTarget = Extract<ImageTarget, { readonly kind: "free-inodes" }>;

/** `null` where the runtime does not say how many inodes its images take: then nothing can be said. */
export function inodeFutilityOf(
  target: InodeTarget,
  filesystem: Filesystem,
  facts: FutilityFacts,
): Futility | null {
  const unused = facts.images.filter(({ id }) => !facts.users.has(id)).length;
  const used = imageUseOf(filesystem, facts).inodes;
  if (used === null) return null;
  const bound = inodeBound(used, unused);
  const missing = target.relievedInodes - filesystem.inodesFree;
  const needed = missing > 0n ? missing : 0n;
  return {
    filesystem: filesystem.path,
    boundBytes: 0n,
    neededBytes: 0n,
    futile: bound < needed,
    inodes: { bound, needed, free: filesystem.inodesFree, capacity: filesystem.inodes },
    breakdown: breakdownOf(filesystem, facts),
  };
}

export interface InodesRemaining {
  readonly target: InodeTarget;
  /** As measured after the removal. */
  readonly inodesFree: bigint;
  /** As it was when the plan was made. */
  readonly imageInodesUsed: bigint | null;
  /** What the pass has gained on this filesystem so far. */
  readonly gainedInodes: bigint;
  /** Unused images that are still there. */
  readonly unusedImages: number;
}

/** Judges again after a removal. */
export function inodesStillUseful(remaining: InodesRemaining): boolean {
  const { imageInodesUsed: used, gainedInodes } = remaining;
  if (used === null) return true;
  const left = used > gainedInodes ? used - gainedInodes : 0n;
  const bound = inodeBound(left, remaining.unusedImages);
  return remaining.inodesFree + bound >= remaining.target.relievedInodes;
}

const inodeBound = (used: bigint, unusedImages: number): bigint =>
  used + INODES_BESIDE_LAYERS * BigInt(Math.max(0, unusedImages));
