/**
 * The interfaces to the outside world, each declared once. Reading and writing are separate, so that a command that observes
 * cannot remove.
 */

import type { WritableLayers } from "./disk-usage.ts";
import type { ContainerId, ImageId, SandboxId } from "./ids.ts";
import type { Ledger } from "./ledger.ts";
import type {
  Clocks,
  Container,
  ContainerDetail,
  Filesystem,
  Image,
  ImageOrigin,
  KeepRules,
  LogReading,
  PodLogDirectory,
  PodReading,
  RuntimeInfo,
  Sandbox,
  SandboxDetail,
} from "./snapshot.ts";

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

/**
 * The reading half of the runtime. Every call has the configured deadline, ends when `signal` aborts, and throws
 * `RuntimeError`.
 */
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

/** The result of statfs for a path. */
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

/** Other facts of the machine. */
export interface HostReader {
  clocks(): Clocks;
  /** Never throws for what is wrong in the rules: that stands in `problems`. */
  keepRules(keepDirectoriesKnown: readonly string[]): Promise<KeepRules>;
  /** Never throws: a source that fails is a reading of kind `failed`. */
  pods(signal: AbortSignal): Promise<PodReading>;
  /** `null` where the log directory does not exist. Never throws for what cannot be read: that is a reading of kind `failed`. */
  logs(): Promise<LogReading | null>;
}

/** The writing half of the runtime. Every call has a deadline and throws `RuntimeError`; NotFound is a success. */
export interface RuntimeWriter {
  /** `name`: asks for it by this name, which has to mean the image, and not by its ID. */
  removeImage(id: ImageId, name?: string): Promise<void>;
  /** The deadline is the configured one plus `graceSeconds`. Given up when `signal` aborts. */
  stopContainer(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void>;
  removeContainer(id: ContainerId): Promise<void>;
  stopSandbox(id: SandboxId, signal: AbortSignal): Promise<void>;
  removeSandbox(id: SandboxId): Promise<void>;
  /** Runs a pre-stop command in a container; resolves with its exit code. */
  execSync(id: ContainerId, command: PreStopCommand, signal: AbortSignal): Promise<number>;
}

export interface PreStopCommand {
  readonly words: readonly string[];
  readonly timeoutSeconds: number;
}

export interface RemovedFiles {
  readonly names: readonly string[];
  readonly bytes: bigint;
}

export interface ContainerLogs {
  readonly path: string;
  /** Of the pod in whose directory the path has to lie. */
  readonly podUid: string;
  /** Files in its directory that others write to: these, and what rotation makes of them, stay. */
  readonly kept: readonly string[];
}

export interface UsedLog {
  readonly path: string;
  /** "": no directory is expected. */
  readonly podUid: string;
}

/** Deletion of log files, bound to the log roots and blind to links below them. Throws `HostError`. */
export interface LogRemover {
  /** `<path>` and `<path>.*` of one container, if they lie in the pod's own directory; otherwise nothing, and an error of kind `refused`. */
  removeContainerLogs(logs: ContainerLogs): Promise<RemovedFiles>;
  /** The legacy link of a container, by its exact name. */
  removeLegacyLink(entry: string): Promise<boolean>;
  /** A removed pod's whole directory. */
  removePodLogs(directory: PodLogDirectory): Promise<RemovedFiles>;
  /**
   * Where logs lie below the log directory, relative to it: by the text of the path, and by links on its way unless it lies in
   * the directory of the named pod.
   */
  placesOf(logs: readonly UsedLog[]): Promise<readonly (readonly string[])[]>;
}

/** The HTTP request of a recorded pre-stop handler. */
export interface HookRequest {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  /** With its leading slash. */
  readonly path: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly timeoutMs: number;
}

/** Calls pods only: like the kubelet, it does not verify their certificates. Throws `HostError` of kind `http`. */
export interface HookCaller {
  /** Resolves with the status of the answer, whatever it is; redirects are not followed. */
  get(request: HookRequest, signal: AbortSignal): Promise<number>;
}

/** The ledger, in memory; keeping it on disk never delays the caller and never fails it. */
export interface LedgerMemory {
  /** The newest ledger; takes in what another process wrote since. */
  current(): Ledger;
  replace(next: Ledger): void;
}

/** Time that passes: injected, so that tests need not wait. */
export interface Timer {
  /** Monotonic nanoseconds. */
  monotonicNs(): bigint;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The kubelet's address and crigc's credentials. */
export interface KubeletClient {
  /** `https://127.0.0.1:10250`, or `http://…` for the read-only port; without a slash at its end. */
  readonly endpoint: string;
  /** PEM; `null` only over `http:`. */
  readonly caFile: string | null;
  readonly clientCertFile: string | null;
  readonly clientKeyFile: string | null;
  readonly tokenFile: string | null;
}

/** A setting of this node's kubelet. */
export interface KubeletSetting {
  /** The name of the configuration's field: `imageGCHighThresholdPercent`. */
  readonly field: string;
  /** As written; `evictionHard` as the flag spells it. */
  readonly text: string;
  /** The file, or the flag. */
  readonly source: string;
}

/** What this process uses of the machine. */
export interface ProcessFigures {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  /** `null`: /proc is not there. */
  readonly openFiles: number | null;
}

/** A call to the runtime that has ended. */
export interface CallRecord {
  /** `ListImages`. */
  readonly method: string;
  /** The name of the gRPC code: `OK`, `NOT_FOUND`. */
  readonly code: string;
  readonly tookMs: number;
}
