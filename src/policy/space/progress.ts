/** Decides whether a pass has freed enough, by the disks or by the gain of its own removals. */

import { assertNever } from "../../model/assert.ts";
import type { ImageTarget } from "../../model/plan.ts";
import { smaller } from "../../model/values.ts";

/** The measurements after the latest removal, and the gains since the start of the pass; maps are by device. */
export interface Progress {
  readonly accounting: "measured" | "reported";
  readonly availableBytes: ReadonlyMap<string, bigint>;
  readonly inodesFree: ReadonlyMap<string, bigint>;
  readonly gainedBytes: ReadonlyMap<string, bigint>;
  readonly gainedInodes: ReadonlyMap<string, bigint>;
  /** The size of the image store now; `null`: the runtime does not say, so reported sizes count. */
  readonly storeBytes: bigint | null;
  readonly imageCount: number;
  /** Reported sizes of images removed for the targets, added up. */
  readonly reportedBytes: bigint;
  /** The same for all images removed in this pass, each layer once where layers are known. */
  readonly estimatedBytes: bigint;
  /** How many images were removed for the targets. */
  readonly removed: number;
}

export type Met = "target-reached" | "own-gain-reached";

/** `null`: the pass continues. It ends when every target is met, so the strictest wins; an empty list is met. */
export function targetsMet(targets: readonly ImageTarget[], progress: Progress): Met | null {
  const all = targets.map((target) => targetMet(target, progress));
  if (all.includes(null)) return null;
  return all.includes("own-gain-reached") ? "own-gain-reached" : "target-reached";
}

/** The same if no candidate is left: with reported sizes, a target of 0 is then met without a removal. */
export const metAfterAll = (targets: readonly ImageTarget[], progress: Progress): Met | null =>
  targetsMet(targets, { ...progress, removed: Math.max(1, progress.removed) });

function targetMet(target: ImageTarget, progress: Progress): Met | null {
  switch (target.kind) {
    case "available-bytes":
      if (progress.accounting === "reported") return reported(target.wantedBytes, progress);
      return met(
        { now: progress.availableBytes.get(target.device), target: target.availableBytes },
        { now: progress.gainedBytes.get(target.device), target: target.wantedBytes },
      );
    case "free-inodes":
      return met(
        { now: progress.inodesFree.get(target.device), target: target.inodesFree },
        { now: progress.gainedInodes.get(target.device), target: target.wantedInodes },
      );
    case "store-bytes":
      return storeMet(target, progress);
    case "image-count":
      return progress.imageCount <= target.maximumImages ? "target-reached" : null;
    case "everything":
      return null;
    default:
      return assertNever(target);
  }
}

type StoreTarget = Extract<ImageTarget, { readonly kind: "store-bytes" }>;

function storeMet({ maximumBytes, wantedBytes }: StoreTarget, progress: Progress): Met | null {
  const { storeBytes, accounting, reportedBytes, estimatedBytes } = progress;
  const isMet =
    accounting === "reported"
      ? reportedBytes >= wantedBytes
      : storeBytes === null
        ? estimatedBytes >= wantedBytes
        : storeBytes <= maximumBytes;
  return isMet ? "target-reached" : null;
}

/** The bytes that a target lacks on its disk or in its budget; `null` if it is not about measured bytes. */
export function lackedBytes(target: ImageTarget, progress: Progress): bigint | null {
  if (target.kind === "store-bytes")
    return progress.storeBytes === null ? null : progress.storeBytes - target.maximumBytes;
  if (target.kind !== "available-bytes") return null;
  const { device, availableBytes, wantedBytes } = target;
  return smaller(
    availableBytes - (progress.availableBytes.get(device) ?? 0n),
    wantedBytes - (progress.gainedBytes.get(device) ?? 0n),
  );
}

interface Reading {
  readonly now: bigint | undefined;
  readonly target: bigint;
}

/** Own gains end a pass if others write as fast as it frees. */
function met(available: Reading, gained: Reading): Met | null {
  if (available.now !== undefined && available.now >= available.target) return "target-reached";
  const enough = gained.now !== undefined && gained.now > 0n && gained.now >= gained.target;
  return enough ? "own-gain-reached" : null;
}

/** The kubelet checks only after a removal, so it removes one image even if the target is 0. */
const reported = (wantedBytes: bigint, { removed, reportedBytes }: Progress): Met | null =>
  removed > 0 && reportedBytes >= wantedBytes ? "target-reached" : null;
