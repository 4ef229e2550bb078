/** Estimates where a pass stops, by adding up what each removal is expected to free. */
import type { ImageLimits } from "../../model/limits.ts";
import type { ImageCandidate, ImageTarget } from "../../model/plan.ts";

export interface EstimateLimits extends Pick<ImageLimits, "compat" | "maximumRemovals"> {
  /** Removals before the images, which count towards the same limit. */
  readonly removedBefore?: number;
}

/** Marks the candidates up to the estimated stop. The pass itself stops by measurement. */
export function estimate(
  candidates: readonly ImageCandidate[],
  targets: readonly ImageTarget[],
  limits: EstimateLimits,
): readonly ImageCandidate[] {
  let sum: Estimate = { bytes: 0n, images: 0 };
  // The kubelet does not count removals for age, and once triggered removes at least one image.
  const separate = limits.compat === "kubelet";
  const room =
    limits.maximumRemovals === null
      ? Infinity
      : limits.maximumRemovals - (limits.removedBefore ?? 0);
  return candidates.map((candidate, index) => {
    const forAge = candidate.triggers.some(({ kind }) => kind === "age");
    const first = separate && sum.images === 0;
    const expected =
      index < room && (forAge || first || !targets.every((target) => isMet(target, sum)));
    if (!(forAge && separate))
      sum = { bytes: sum.bytes + expectedBytes(candidate), images: sum.images + 1 };
    return { ...candidate, expected };
  });
}

/** The estimate from layers, else the reported size. */
export const expectedBytes = ({ frees, image }: ImageCandidate): bigint =>
  frees?.estimateBytes ?? image.sizeBytes;

interface Estimate {
  readonly bytes: bigint;
  readonly images: number;
}

function isMet(target: ImageTarget, sum: Estimate): boolean {
  switch (target.kind) {
    case "available-bytes":
    case "store-bytes":
      return sum.bytes >= target.wantedBytes;
    case "image-count":
      return sum.images >= target.wantedImages;
    case "free-inodes":
      // No runtime reports how many inodes an image takes.
      return target.wantedInodes <= 0n;
    case "everything":
      return false;
  }
}
