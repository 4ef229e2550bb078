/** The order of the offline bound: what is used farthest in the future goes first. */

import type { ImageId } from "../model/ids.ts";
import { compared } from "../model/values.ts";
import type { Reorder } from "./pass.ts";

/** Larger first among those that are never used again. */
export const farthestFirst =
  (begins: ReadonlyMap<ImageId, readonly number[]>, nowMs: number): Reorder =>
  (candidates) =>
    candidates
      .map((candidate) => ({
        candidate,
        nextMs: nextAfter(begins.get(candidate.image.id) ?? [], nowMs),
      }))
      .toSorted(
        (one, other) =>
          compared(other.nextMs, one.nextMs) ||
          compared(other.candidate.image.sizeBytes, one.candidate.image.sizeBytes),
      )
      .map(({ candidate }) => candidate);

/** Infinity: never. */
function nextAfter(times: readonly number[], nowMs: number): number {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle] ?? Infinity) > nowMs) to = middle;
    else from = middle + 1;
  }
  return times[from] ?? Infinity;
}
