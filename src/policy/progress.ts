/** Whether a pass has reached its end: by what the disk says now, or by what its own removals gained. */
import { assertNever } from "../model/assert.ts";
import type { ImageLimits } from "../model/limits.ts";
import type { ImageTarget } from "../model/plan.ts";

/** What was measured after the latest removal, and what the pass gained since its start. */
export interface Progress {
  /** By device. A device that was not measured is missing, and its target not met by it. */
  readonly availableBytes: ReadonlyMap<string, bigint>;
  readonly inodesFree: ReadonlyMap<string, bigint>;
  /** Gained by this pass's own removals, measured, by device. */
  readonly gainedBytes: ReadonlyMap<string, bigint>;
  readonly gainedInodes: ReadonlyMap<string, bigint>;
  /** What the image store takes now; `null`: not measured, so reported sizes count. */
  readonly storeBytes: bigint | null;
  readonly imageCount: number;
  /** Reported sizes of what this pass removed for its targets, added up. Removals for age count only where space is measured. */
  readonly reportedBytes: bigint;
  /** How many images this pass removed for its targets. */
  readonly removed: number;
}

export const noProgress: Progress = {
  availableBytes: new Map(),
  inodesFree: new Map(),
  gainedBytes: new Map(),
  gainedInodes: new Map(),
  storeBytes: null,
  imageCount: Number.POSITIVE_INFINITY,
  reportedBytes: 0n,
  removed: 0,
};

export type Met = "target-reached" | "own-gain-reached";

/** `null`: the pass goes on. Own gains end it where others write as fast as it frees. No targets at all are met. */
export function targetsMet(
  targets: readonly ImageTarget[],
  progress: Progress,
  accounting: ImageLimits["accounting"],
): Met | null {
  const all = targets.map((target) => targetMet(target, progress, accounting));
  if (all.includes(null)) return null;
  return all.includes("own-gain-reached") ? "own-gain-reached" : "target-reached";
}

export function targetMet(
  target: ImageTarget,
  progress: Progress,
  accounting: ImageLimits["accounting"],
): Met | null {
  switch (target.kind) {
    case "available-bytes":
      if (accounting === "reported") return reported(target.wantedBytes, progress);
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
      if (accounting === "measured" && progress.storeBytes !== null) {
        return progress.storeBytes <= target.maximumBytes ? "target-reached" : null;
      }
      return progress.reportedBytes >= target.wantedBytes ? "target-reached" : null;
    case "image-count":
      return progress.imageCount <= target.maximumImages ? "target-reached" : null;
    case "everything":
      return null;
    default:
      return assertNever(target);
  }
}

interface Reading {
  readonly now: bigint | undefined;
  readonly target: bigint;
}

function met(available: Reading, gained: Reading): Met | null {
  if (available.now !== undefined && available.now >= available.target) return "target-reached";
  const enough = gained.now !== undefined && gained.now > 0n && gained.now >= gained.target;
  return enough ? "own-gain-reached" : null;
}

/** The kubelet looks only after a removal, so that one image goes even where nothing is wanted. */
const reported = (wantedBytes: bigint, { removed, reportedBytes }: Progress): Met | null =>
  removed > 0 && reportedBytes >= wantedBytes ? "target-reached" : null;
