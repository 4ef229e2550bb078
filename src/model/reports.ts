/** What reports alone show: findings of an audit, gaps of a baseline, a fleet, and disk usage by layers. */

import type { DiskSample, Removal } from "./history.ts";
import type { ChainId, ContainerId } from "./ids.ts";
import type { Bounds, DiskBreakdown } from "./plan.ts";
import type { Container, Filesystem, Image, Sandbox } from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

/** A removed image from the history, with the measured and expected bytes. */
export type PastRemoval = Pick<
  Removal,
  "names" | "measuredBytes" | "freesAtLeastBytes" | "settled" | "at"
>;

/** `removable`: no use, pin or rule keeps the image, so removing it by hand is safe. */
export type AuditFinding =
  /** It has neither tag nor digest. */
  | {
      readonly kind: "nameless-image";
      readonly image: Image;
      readonly inUse: boolean;
      readonly removable: boolean;
    }
  | {
      readonly kind: "ghost-image";
      readonly image: Image;
      readonly since: Instant;
      readonly attempts: number;
    }
  /** Bytes of a filesystem that no image, container or log explains. */
  | {
      readonly kind: "unexplained-bytes";
      readonly filesystem: string;
      readonly breakdown: DiskBreakdown;
    }
  /** It has a digest but no tag, and nothing uses it. */
  | { readonly kind: "untagged-image"; readonly image: Image; readonly removable: boolean }
  /** Its only name is the one that containerd invents for an import: `import-2026-01-31@sha256:…`. */
  | {
      readonly kind: "made-up-name";
      readonly image: Image;
      readonly inUse: boolean;
      readonly removable: boolean;
    }
  /** Removals of this repository's images freed far less than their layers suggest: something else keeps their content. */
  | {
      readonly kind: "content-kept";
      readonly repository: string;
      readonly removals: number;
      /** The least that these removals should have freed, and what they freed, added up. */
      readonly expectedAtLeastBytes: bigint;
      readonly measuredBytes: bigint;
      readonly lastAt: Instant;
    }
  /** The runtime's image store is larger than its images explain. */
  | {
      readonly kind: "unexplained-store-bytes";
      readonly filesystem: string;
      readonly usedBytes: bigint;
      /** Of all listed images, added up. */
      readonly reportedBytes: bigint;
      readonly images: number;
    }
  | { readonly kind: "foreign-container"; readonly container: Container }
  | { readonly kind: "foreign-sandbox"; readonly sandbox: Sandbox }
  /** Its sandbox is not listed. */
  | { readonly kind: "orphan-container"; readonly container: Container }
  /** The log directories could not be read, so no log is removed. */
  | { readonly kind: "unread-logs"; readonly message: string }
  | { readonly kind: "stray-log-entry"; readonly directory: string; readonly entry: string }
  /** The kubelet's record of a pulled image that is not on the node. `imageRef`: `null` if the record is not valid. */
  | {
      readonly kind: "stale-pull-record";
      readonly path: string;
      readonly imageRef: string | null;
      readonly names: readonly string[];
    }
  /** A pull that a crash interrupted, of a name that no image on the node has. */
  | { readonly kind: "stale-pull-intent"; readonly name: string; readonly directory: string }
  /** The kubelet will ask the registry, although the image is here to stay. */
  | {
      readonly kind: "pull-needs-credentials";
      readonly image: Image;
      readonly path: string;
      readonly because: "baseline" | "loaded";
    }
  /** A record that is not valid, such as one of 0 bytes after a power cut. */
  | { readonly kind: "broken-pull-record"; readonly image: Image; readonly path: string }
  /** A container's reference that matches no image. */
  | { readonly kind: "unresolved-reference"; readonly reference: string; readonly message: string }
  /** What something uses could not be read, so no image is removed. */
  | { readonly kind: "unknown-use"; readonly subject: string; readonly message: string };

/** An image of a baseline, or the sandbox image, that is not as it should be. */
export interface BaselineGap {
  /**
   * `missing`: not on the node. `name-missing`: there, but not under these names. `sandbox-image`: missing, and without it
   * no pod starts. `unpinned`: there, but the runtime no longer pins it.
   */
  readonly kind: "missing" | "name-missing" | "sandbox-image" | "unpinned";
  /** A tag or digest if it has one, else the ID. */
  readonly name: string;
  /** Its lines that match no image; of an unpinned one, the line that says that it was pinned. */
  readonly patterns: readonly string[];
  /** The first of these lines, or who names the sandbox image. */
  readonly source: string;
}

export interface Baseline {
  /** Images that baselines name. */
  readonly images: number;
  /** Of these, the ones that are there under all their names. */
  readonly present: number;
  /** All that are missing, under one of their names or altogether; also the sandbox image, which no baseline need name. */
  readonly missing: number;
  readonly gaps: readonly BaselineGap[];
}

export const isMissing = ({ kind }: BaselineGap): boolean => kind !== "unpinned";

/** An image by its ID, which is the same on every node. */
export interface FleetImage {
  readonly id: string;
  /** A tag or digest of the first node that has it, else the ID. */
  readonly name: string;
  /** A keep rule that matches it on each of its nodes: the name if it has it everywhere, else the ID. */
  readonly pattern: string;
  readonly sizeBytes: bigint;
  /** Nodes that have it. */
  readonly nodes: number;
  /** Nodes on which something uses it. */
  readonly usedOn: number;
  /** The only node that has it; `null`: several have. */
  readonly onlyOn: string | null;
}

/** What a node's snapshot says of it alone. */
export interface FleetFigures {
  readonly name: string;
  readonly observedAt: Instant;
  readonly images: number;
  /** As the runtime reports them. */
  readonly imagesBytes: bigint;
  readonly unusedImages: number;
  /** Of the image filesystem; `null`: unknown. */
  readonly capacityBytes: bigint | null;
  readonly availableBytes: bigint | null;
}

export interface FleetNode extends FleetFigures {
  /** Images that no other node has. */
  readonly onlyCopies: number;
  readonly onlyCopiesBytes: bigint;
  /** Images that came back after their removal; `null`: no history. */
  readonly returnedImages: number | null;
  readonly returnedBytes: bigint | null;
}

/** The disk usage of a directory on its filesystem. */
export interface DirectorySize {
  readonly path: string;
  readonly bytes: bigint;
}

export interface DirectoryWalk {
  /** `false` if time ran out, so there may be more. */
  readonly complete: boolean;
  /** Largest first; none is within another, except within the root, which counts the files directly in it. */
  readonly directories: readonly DirectorySize[];
  /** Everything seen. */
  readonly bytes: bigint;
}

/** A filesystem with the time of its measurement. */
export interface MeasuredFilesystem extends Filesystem {
  readonly measuredAt: Instant;
}

/** What a container wrote, as the runtime reports it. */
export interface WritableLayer {
  readonly bytes: bigint;
  readonly inodes: bigint;
}

export type WritableLayers = ReadonlyMap<ContainerId, WritableLayer>;

/** A group of images. */
export interface ImageShare {
  /** A repository, a namespace, a family by its smallest image, or a state; `null` if unknown. */
  readonly name: string | null;
  readonly images: number;
  /** Images that no use and no rule keeps. */
  readonly removable: number;
  /** Reported sizes, added up: shared layers count for each image. */
  readonly reportedBytes: bigint;
  /** Layers that no other image has, so that removing all of these would free them. In the unit of reported sizes. */
  readonly unique: Bounds;
  /** Layers that these images share with others. */
  readonly shared: Bounds;
  /** The latest use of any of them; `null`: never seen in use. */
  readonly lastUsedAt: Instant | null;
}

export interface ImageUsage {
  readonly total: ImageShare;
  /** Named by `ImageState`. */
  readonly byState: readonly ImageShare[];
  readonly byRepository: readonly ImageShare[];
  /** An image that pods of two namespaces use is in both. */
  readonly byNamespace: readonly ImageShare[];
  readonly byFamily: readonly ImageShare[];
}

export interface ChainLayer {
  readonly chain: ChainId;
  /** How many images have this layer and all layers below it. */
  readonly through: number;
  /** The size of all layers up to this one. */
  readonly path: Bounds;
}

/** An image's layers, and what its removal alone would free. */
export interface ImageLayers {
  readonly chain: readonly ChainLayer[];
  readonly frees: Bounds;
}

export type DiskPoint = Pick<
  DiskSample,
  "at" | "device" | "mountpoint" | "capacityBytes" | "availableBytes" | "freedBytes"
>;

/** When a filesystem reaches its threshold and when it is full, at the present rate and if nothing is removed. */
export interface Forecast {
  readonly bytesPerHour: bigint;
  /** The span over which the rate was measured. */
  readonly span: Duration;
  /** How far the forecast looks. */
  readonly horizon: Duration;
  /** 0 if it is reached already; `null`: beyond the horizon, or without a threshold. */
  readonly untilHigh: Duration | null;
  /** `null`: beyond the horizon. */
  readonly untilFull: Duration | null;
}
