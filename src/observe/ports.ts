/** What observation needs of the world: reading only, so that a command that observes is unable to remove. */

import type { WritableLayers } from "../model/disk-usage.ts";
import type { ContainerId, ImageId, SandboxId } from "../model/ids.ts";
import type {
  Clocks,
  Container,
  ContainerDetail,
  Filesystem,
  Image,
  ImageOrigin,
  KeepRules,
  LogReading,
  PodReading,
  RuntimeInfo,
  Sandbox,
  SandboxDetail,
} from "../model/snapshot.ts";

/** An entry of `ImageFsInfo`. */
export interface ReportedFilesystem {
  /** A directory inside the filesystem, not a mount point. */
  readonly path: string;
  readonly usedBytes: bigint | null;
  readonly inodesUsed: bigint | null;
}

export interface ReportedFilesystems {
  readonly images: readonly ReportedFilesystem[];
  readonly containers: readonly ReportedFilesystem[];
}

/** The runtime, read. Every call has the configured deadline, is abandoned when `signal` aborts, and throws `RuntimeError`. */
export interface RuntimeReader {
  info(signal: AbortSignal): Promise<RuntimeInfo>;
  listImages(signal: AbortSignal): Promise<readonly Image[]>;
  listContainers(signal: AbortSignal): Promise<readonly Container[]>;
  listSandboxes(signal: AbortSignal): Promise<readonly Sandbox[]>;
  /** `null`: the runtime has no such container. */
  containerDetail(id: ContainerId, signal: AbortSignal): Promise<ContainerDetail | null>;
  /** `null`: the runtime has no such sandbox. */
  sandboxDetail(id: SandboxId, signal: AbortSignal): Promise<SandboxDetail | null>;
  /** Where the containers of the sandbox log to; "" where the runtime does not say, `null` where it has no such sandbox. */
  sandboxLogDirectory(id: SandboxId, signal: AbortSignal): Promise<string | null>;
  /** The image that the sandbox's own status names; `null` where it names none or the sandbox is gone. */
  sandboxImage(id: SandboxId, signal: AbortSignal): Promise<string | null>;
  /** `null`: the runtime has no such image. */
  imageStatus(reference: string, signal: AbortSignal): Promise<Image | null>;
  /** What containers wrote over their images; `null`: the runtime does not report it. */
  writableLayers(signal: AbortSignal): Promise<WritableLayers | null>;
  /** What the image with exactly this ID was made from; `null`: the runtime has no such image. */
  imageOrigin(id: ImageId, signal: AbortSignal): Promise<ImageOrigin | null>;
  reportedFilesystems(signal: AbortSignal): Promise<ReportedFilesystems>;
}

/** What statfs says of a path. */
export interface DiskReading {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
}

/** The machine's filesystems. Throws `HostError` of kind `stat`. */
export interface DiskReader {
  /** One entry for each device, with the roles it plays; the node's own root directory gives `nodefs`. */
  filesystems(reported: ReportedFilesystems): Promise<readonly Filesystem[]>;
  measure(path: string): Promise<DiskReading>;
}

/** What else the machine says. */
export interface HostReader {
  clocks(): Clocks;
  /** Never throws for what is wrong in the rules: that stands in `problems`. */
  keepRules(keepDirectoriesKnown: readonly string[]): Promise<KeepRules>;
  /** Never throws: a source that fails is a reading of kind `failed`. */
  pods(signal: AbortSignal): Promise<PodReading>;
  /** `null` where the log directory does not exist. Never throws for what cannot be read: that is a reading of kind `failed`. */
  logs(): Promise<LogReading | null>;
}
