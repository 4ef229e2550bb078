/** How far a pass has come towards its targets: what the disks say now, and what its own removals gained. */
import type { DiskReading } from "../observe/ports.ts";
import type { ImageTarget } from "../model/plan.ts";
import { assertNever } from "../model/assert.ts";

export interface Gain {
  readonly bytes: bigint;
  readonly inodes: bigint;
}

export interface Progress {
  readonly accounting: "measured" | "reported";
  /** The latest reading of each path that is measured. */
  readonly readings: ReadonlyMap<string, DiskReading>;
  /** What removals of this pass gained, by path. */
  readonly gains: ReadonlyMap<string, Gain>;
  /** Gained on the filesystem of the image store as a whole. */
  readonly storeGainedBytes: bigint;
  readonly reportedBytes: bigint;
  readonly removed: number;
}

export type TargetState = "met" | "met-by-own-gain" | "open";

/** Met where the disk says so, or where the pass itself gained what was wanted as of its start: others may be writing. */
export function targetState(target: ImageTarget, progress: Progress): TargetState {
  switch (target.kind) {
    case "available-bytes": {
      if (progress.accounting === "reported") return progress.reportedBytes >= target.wantedBytes ? "met" : "open";
      const available = progress.readings.get(target.path)?.availableBytes;
      if (available !== undefined && available >= target.availableBytes) return "met";
      return (progress.gains.get(target.path)?.bytes ?? 0n) >= target.wantedBytes ? "met-by-own-gain" : "open";
    }
    case "free-inodes": {
      const free = progress.readings.get(target.path)?.inodesFree;
      if (free !== undefined && free >= target.inodesFree) return "met";
      return (progress.gains.get(target.path)?.inodes ?? 0n) >= target.wantedInodes ? "met-by-own-gain" : "open";
    }
    case "store-bytes": {
      const gained = progress.accounting === "reported" ? progress.reportedBytes : progress.storeGainedBytes;
      return gained >= target.wantedBytes ? "met" : "open";
    }
    case "image-count":
      return progress.removed >= target.wantedImages ? "met" : "open";
    case "everything":
      return "open";
    default:
      return assertNever(target);
  }
}

/** The pass ends when every target is met: the strictest one wins. No target at all is met, too. */
export function targetsState(targets: readonly ImageTarget[], progress: Progress): TargetState {
  const states = targets.map((target) => targetState(target, progress));
  if (states.includes("open")) return "open";
  return states.includes("met-by-own-gain") ? "met-by-own-gain" : "met";
}

/** Paths that have to be measured for these targets. */
export function measuredPaths(targets: readonly ImageTarget[]): readonly string[] {
  const paths = new Set<string>();
  for (const target of targets) {
    if (target.kind === "available-bytes" || target.kind === "free-inodes") paths.add(target.path);
  }
  return [...paths];
}
