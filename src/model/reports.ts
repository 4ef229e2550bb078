/** What reports and status show of a node. */

import type { ContainerId } from "./ids.ts";
import type { Filesystem, RuntimeInfo } from "./snapshot.ts";
import type { Instant } from "./time.ts";

/** The disk usage of a directory on its filesystem. */
export interface DirectorySize {
  readonly path: string;
  readonly bytes: bigint;
}

export interface DirectoryWalk {
  /** `false` if time ran out, so there may be more. */
  readonly complete: boolean;
  /** With large files, largest first. None is within another, except within the root, which counts only its own files. */
  readonly directories: readonly DirectorySize[];
  /** Everything seen. */
  readonly bytes: bigint;
}

/** A filesystem with the time of its measurement. */
export interface MeasuredFilesystem extends Filesystem {
  readonly measuredAt: Instant;
}

/** Bytes that containers wrote, as the runtime reports them. */
export type WritableLayers = ReadonlyMap<ContainerId, bigint>;

/** A group of images. */
export interface ImageShare {
  /** A repository or a state; `null`: no name. */
  readonly name: string | null;
  readonly images: number;
  /** Images that no use and no rule keeps. */
  readonly removable: number;
  /** Reported sizes, added up: shared layers count for each image. */
  readonly reportedBytes: bigint;
  /** Layers that no other image has, so that removing all of these would free them. In the unit of reported sizes. */
  readonly uniqueBytes: bigint;
  /** Layers that these images share with others. */
  readonly sharedBytes: bigint;
  /** The latest use of any of them; `null`: never seen in use. */
  readonly lastUsedAt: Instant | null;
}

export interface ImageUsage {
  readonly total: ImageShare;
  /** Named by `ImageState`. */
  readonly byState: readonly ImageShare[];
  readonly byRepository: readonly ImageShare[];
}

/** What a pass saw of the node, for status and metrics. */
export interface Seen {
  readonly runtime: RuntimeInfo;
  readonly filesystems: readonly Filesystem[];
  readonly deadContainers: number;
  /** Keep patterns that match no image. */
  readonly unmatchedKeepRules: readonly string[];
  readonly observedAt: Instant;
}
