/** A plan: what would be removed, in which order, and why everything else is kept. Plain data. */

import type { ImageId } from "./ids.ts";
import type { ImageRecord } from "./ledger.ts";
import type { Signal } from "./limits.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  ImageKeepReason,
  ImageTrigger,
  LogKeepReason,
  LogRemoveReason,
  RemovalBlock,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "./reason.ts";
import type {
  Container,
  DanglingLogLink,
  Filesystem,
  Image,
  PodLogDirectory,
  Sandbox,
} from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

/** Selects images for removal by hand. Every rule that keeps an image still applies. */
export type Criterion =
  /** A named image. */
  | { readonly kind: "id"; readonly id: ImageId }
  /** A keep pattern that matches one of its names. */
  | { readonly kind: "reference"; readonly pattern: string }
  /** Unused for at least this uptime. */
  | { readonly kind: "unused-for"; readonly span: Duration }
  | { readonly kind: "untagged" }
  /** Larger than this, as reported. */
  | { readonly kind: "larger-than"; readonly bytes: bigint }
  /** Containers, sandboxes and logs of the namespace, and images that its containers use. */
  | { readonly kind: "namespace"; readonly name: string };

/** An image is selected if it matches one criterion of each kind given. */
export type Selection = readonly Criterion[];

export type Purpose =
  /**
   * Thresholds, ages, budgets: what the periodic loops do. `freeBytes`: besides, until so much is available on the image
   * filesystems, whatever the thresholds.
   */
  | { readonly kind: "periodic"; readonly freeBytes?: bigint }
  /** Every unused image that no rule keeps, at any disk usage; `only`: of those selected by hand. */
  | {
      readonly kind: "all-unused";
      readonly only?: Selection;
      /** The operator named each of these images. */
      readonly isByName?: boolean;
    }
  /** Until the pressure on these signals ends. */
  | { readonly kind: "pressure"; readonly signals: readonly Signal[] };

/** A target of a pass, which ends when all targets of its triggers are reached. */
export type ImageTarget =
  | {
      readonly kind: "available-bytes";
      readonly trigger: ImageTrigger;
      readonly device: string;
      readonly path: string;
      /** Reached when at least this much is available. */
      readonly availableBytes: bigint;
      /** What was missing when the plan was made, root's reserve included; once the estimates add up to it, the pass ends too. */
      readonly wantedBytes: bigint;
      /** At or above this the disk no longer triggers; futility is measured against it. */
      readonly relievedBytes: bigint;
    }
  | {
      readonly kind: "free-inodes";
      readonly trigger: ImageTrigger;
      readonly device: string;
      readonly path: string;
      readonly inodesFree: bigint;
      readonly wantedInodes: bigint;
      readonly relievedInodes: bigint;
    }
  | {
      readonly kind: "store-bytes";
      readonly trigger: ImageTrigger;
      readonly maximumBytes: bigint;
      readonly wantedBytes: bigint;
    }
  /** No target: every candidate is removed. */
  | { readonly kind: "everything"; readonly trigger: ImageTrigger };

/** An image by the rules of protection. */
export interface JudgedImage {
  readonly image: Image;
  readonly record: ImageRecord;
  /** Codes of the rules that were evaluated, in order. */
  readonly tried: readonly ImageKeepReason["kind"][];
}

/** An image that no rule keeps, at its place in the order of removal. */
export interface ImageCandidate extends JudgedImage {
  /** `age`: it is removed at any disk usage, before all others. Otherwise the triggers that are met. */
  readonly triggers: readonly ImageTrigger[];
  /** Uptime since the later of first seen and last used. */
  readonly unusedFor: Duration;
  /** Whether the estimates expect the pass to reach this image. */
  readonly expected: boolean;
  /** About what its removal frees after those before it, in reported sizes; its size if its layers are unknown. */
  readonly estimateBytes: bigint;
}

/** The last rule that was evaluated decided. */
export interface KeptImage extends JudgedImage {
  readonly reason: ImageKeepReason;
}

/** The upper bound of what removing images could free on a filesystem, and the bytes needed. */
export interface Futility {
  readonly filesystem: string;
  readonly boundBytes: bigint;
  readonly neededBytes: bigint;
  readonly futile: boolean;
  /** The same for inodes, if these are short. The amounts in bytes are 0 then. */
  readonly inodes?: InodeBound;
  /** What fills the disk, as far as known. */
  readonly breakdown: DiskBreakdown;
}

export interface InodeBound {
  /** The most inodes that removing images could free; `null`: the runtime does not count them. */
  readonly bound: bigint | null;
  readonly needed: bigint;
  readonly free: bigint;
  readonly capacity: bigint;
}

export interface DiskBreakdown {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  /** By files: what is reserved for root and free does not count. */
  readonly usedBytes: bigint;
  /** At most; with writable layers where the runtime does not tell them apart. */
  readonly imagesBytes: bigint;
  /** Writable layers; `null` if the runtime does not tell them from images. */
  readonly containersBytes: bigint | null;
  /** At least this is neither image nor container. */
  readonly otherBytes: bigint;
}

export interface ImagePlan {
  readonly purpose: Purpose["kind"];
  readonly now: Instant;
  readonly triggers: readonly ImageTrigger[];
  readonly targets: readonly ImageTarget[];
  /** In the order of removal; a pass removes a prefix. Empty if `blocks` is not, but for the kubelet's age pass. */
  readonly candidates: readonly ImageCandidate[];
  readonly kept: readonly KeptImage[];
  readonly blocks: readonly RemovalBlock[];
  readonly futility: readonly Futility[];
  /** The percentages by which the disk was judged. */
  readonly usage: readonly DiskUsage[];
  readonly notes: readonly PlanNote[];
}

export type PlanNote =
  /** Why no image is removed for a disk that triggers, while some are removed for something else. */
  | {
      readonly kind: "out-of-reach";
      readonly block: Extract<RemovalBlock, { readonly kind: "futile" | "nothing-freed" }>;
    }
  /** A high threshold of 100 without a maximum age. */
  | { readonly kind: "space-off" }
  /** Like the kubelet, it removes nothing for its age before an agent has run for that long. */
  | { readonly kind: "maximum-age-needs-agent" };

export interface DiskUsage {
  readonly filesystem: Filesystem;
  /** 100 less the whole percent that is available: rounded up, as in the kubelet. */
  readonly usedPercent: number;
  readonly inodesUsedPercent: number | null;
  readonly highPercent: number;
  readonly lowPercent: number;
  /** Eviction thresholds on its bytes that removing images can relieve; absent: not judged. */
  readonly evictions?: readonly EvictionMark[];
}

export interface EvictionMark {
  readonly signal: Signal;
  readonly limitBytes: bigint;
  /** Disk usage above which it is met, to the nearest percent. */
  readonly usedPercent: number;
  readonly met: boolean;
}

export type Decision<Keep, Remove> = { readonly tried: readonly string[] } & (
  | { readonly kind: "keep"; readonly reason: Keep }
  | { readonly kind: "remove"; readonly reason: Remove }
);

export interface PlannedContainer {
  readonly container: Container;
  readonly decision: Decision<ContainerKeepReason, ContainerRemoveReason>;
}

export interface PlannedSandbox {
  readonly sandbox: Sandbox;
  readonly decision: Decision<SandboxKeepReason, SandboxRemoveReason>;
}

export interface PlannedPodLogs {
  readonly directory: PodLogDirectory;
  readonly decision: Decision<LogKeepReason, LogRemoveReason>;
}

export interface ContainerPlan {
  readonly purpose: Purpose["kind"];
  readonly now: Instant;
  /** In the order of removal, then what is kept. */
  readonly containers: readonly PlannedContainer[];
  /** Judged as if the planned containers were removed; the pass judges again on fresh lists. */
  readonly sandboxes: readonly PlannedSandbox[];
  readonly podLogs: readonly PlannedPodLogs[];
  /** Those to delete. */
  readonly links: readonly DanglingLogLink[];
  readonly strays: readonly string[];
  /**
   * Why the log directories could not be read, so that no log is deleted, not even that of a removed container; `null`
   * if they could.
   */
  readonly logsError: string | null;
  /** If not empty, nothing at all is removed, for these reasons. */
  readonly blocks: readonly RemovalBlock[];
  /** The pod source, and whether it is ready. */
  readonly podSource: PodSourceState;
}

export type PodSourceState =
  | { readonly kind: "ready"; readonly source: string }
  | { readonly kind: "none"; readonly why: string }
  | { readonly kind: "not-ready"; readonly source: string; readonly why: string };

export interface Plan {
  readonly containers: ContainerPlan | null;
  readonly images: ImagePlan | null;
}
