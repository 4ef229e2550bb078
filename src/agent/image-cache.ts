/**
 * The image list, refreshed every 30 s: for status, metrics and the control socket, and to drop ledger records of
 * removed images.
 */

import type { ReadEngine } from "../gc/ports.ts";
import { type Image, largerFirst } from "../model/snapshot.ts";
import { byObject } from "../policy/by-object.ts";
import { forgetUnlisted } from "../policy/remember.ts";

export const largestFirst = byObject((images: readonly Image[]) => images.toSorted(largerFirst));

/**
 * Drops records of images that are no longer listed: a pass may take minutes, and an image that left and came back
 * before the next observation is new. The kubelet knows only what its detection saw.
 */
export function forgetGone(
  { memory, limits }: Pick<ReadEngine, "memory" | "limits">,
  listed: readonly Image[],
): void {
  if (limits().memory.compat === "kubelet") return;
  const before = memory.current();
  const after = forgetUnlisted(before, listed);
  if (after !== before) memory.replace(after);
}
