/** The list of images that status, metrics and the control socket show: refreshed every 30 s, largest first. */

import type { Image } from "../model/snapshot.ts";

/** Size downwards, then ID downwards: the kubelet's order. */
export function largestFirst(images: readonly Image[]): readonly Image[] {
  return images.toSorted((a, b) => {
    if (a.sizeBytes !== b.sizeBytes) return a.sizeBytes < b.sizeBytes ? 1 : -1;
    return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
  });
}
