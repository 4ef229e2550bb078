/** The operator's limits, in the units of policy. Defaults and ranges are in config/fields.ts. */

import type { Duration } from "./time.ts";

export type Compat = "none" | "kubelet";

export interface ImageLimits {
  /** Percent of the filesystem, 0 to 100, at which collection starts. */
  readonly highPercent: number;
  /** Percent to which it frees, 0 to 100, at most `highPercent`. */
  readonly lowPercent: number;
  /** An image younger than this since first seen is kept. */
  readonly minimumAge: Duration;
  /** An image unused for longer goes whatever the disk says; 0: off. */
  readonly maximumAge: Duration;
  /** Percent of inodes at which collection starts; `null`: off. */
  readonly inodeHighPercent: number | null;
  readonly inodeLowPercent: number | null;
  /** Bytes that the image store may take; `null`: off. */
  readonly storeBudgetBytes: bigint | null;
  /** Images that the node may hold; `null`: off. */
  readonly maximumImages: number | null;
  /** Keep images that came from an archive. */
  readonly keepLoaded: boolean;
  /** Keep the N most recently used tags of each repository; 0: off. */
  readonly keepPerRepository: number;
  /** Names of the sandbox image given by flag. */
  readonly infraImages: readonly string[];
  readonly whenFutile: "keep" | "collect";
  readonly accounting: "measured" | "reported";
  /** Removals in one pass; `null`: no limit. */
  readonly maximumRemovals: number | null;
  /** Pause between two removals. */
  readonly removalInterval: Duration;
  readonly compat: Compat;
}

export interface ContainerLimits {
  /** A dead container younger than this is kept. Counted from its end; from its creation under `compat: kubelet`. */
  readonly minimumAge: Duration;
  /** Dead instances kept for each pod and container name; negative: no limit. */
  readonly maximumPerPodContainer: number;
  /** Dead instances kept on the node; negative: no limit. */
  readonly maximumContainers: number;
  /** The longest grace period of a container that has to be stopped before it is removed. */
  readonly stopGraceMax: Duration;
  readonly collectForeign: boolean;
  readonly compat: Compat;
}

/** Limits of the ledger, and how long a node is only observed. */
export interface MemoryLimits {
  /** A gap between two observations counts for at most twice this. */
  readonly detectionPeriod: Duration;
  /** Watched time after a boot in which nothing is removed; 0: none. */
  readonly bootGrace: Duration;
  /** With the pod source `cri`: watched time after which a dead pod counts as removed. */
  readonly deadPodTtl: Duration;
  readonly compat: Compat;
}

export type Signal =
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "containerfs.available"
  | "containerfs.inodesFree";

/** A share of the capacity, as the float32 that the kubelet computes with, or an exact amount. */
export type Amount =
  | { readonly kind: "quantity"; readonly value: bigint }
  | { readonly kind: "fraction"; readonly value: number };

export interface Threshold {
  readonly signal: Signal;
  readonly amount: Amount;
  /** 0: hard. */
  readonly grace: Duration;
  /** What has to be free beyond the threshold before the pressure counts as gone. */
  readonly minimumReclaim: Amount | null;
}

export interface PressureLimits {
  readonly thresholds: readonly Threshold[];
  /** How long the condition is still reported after the pressure is gone. */
  readonly transitionPeriod: Duration;
}

export interface Limits {
  readonly images: ImageLimits;
  readonly containers: ContainerLimits;
  readonly memory: MemoryLimits;
  readonly pressure: PressureLimits;
}
