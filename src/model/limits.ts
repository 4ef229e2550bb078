/** The operator's limits, in the units of policy. Defaults and ranges are in config/table.ts. */

import type { Duration } from "./time.ts";

export interface ImageLimits {
  /** Percent of the filesystem, 0 to 100, at which collection starts. */
  readonly highPercent: number;
  /** Percent to free down to, 0 to 100, at most `highPercent`. */
  readonly lowPercent: number;
  /** Images first seen within this duration are kept. */
  readonly minimumAge: Duration;
  /** Images unused for longer are removed at any disk usage; 0: off. */
  readonly maximumAge: Duration;
  /** Maximum size of the image store in bytes; `null`: off. */
  readonly storeBudgetBytes: bigint | null;
  /** Keep images that came from an archive. */
  readonly keepLoaded: boolean;
  /** Keep the N most recently used tags of each repository; 0: off. */
  readonly keepPerRepository: number;
  readonly infraImages: readonly string[];
}

/** The disk usage at which GC starts, and the one that it frees down to. */
export type Thresholds = Pick<ImageLimits, "highPercent" | "lowPercent">;

export interface ContainerLimits {
  /** Dead containers younger than this are kept. */
  readonly minimumAge: Duration;
  /** Dead instances kept for each pod and container name; negative: no limit. */
  readonly maximumPerPodContainer: number;
  /** Dead instances kept on the node; negative: no limit. */
  readonly maximumContainers: number;
  readonly collectForeign: boolean;
}

/** Limits of the ledger, and the grace period after a boot. */
export interface LedgerLimits {
  /** The first pause after removals that gave no space back. */
  readonly imageGcPeriod: Duration;
  /** Uptime after a boot in which nothing is removed; 0: none. */
  readonly bootGrace: Duration;
  /** With pod source `cri`: uptime after which a dead pod counts as deleted. */
  readonly deadPodTtl: Duration;
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
  /** What has to be free beyond the threshold before the pressure ends. */
  readonly minimumReclaim: Amount | null;
}

export interface PressureLimits {
  readonly thresholds: readonly Threshold[];
  /** How long the condition is still reported after the pressure ended. */
  readonly transitionPeriod: Duration;
}

export interface Limits {
  readonly images: ImageLimits;
  readonly containers: ContainerLimits;
  readonly ledger: LedgerLimits;
  readonly pressure: PressureLimits;
}
