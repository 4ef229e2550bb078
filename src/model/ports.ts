/**
 * The interfaces to the outside world, each declared once. Reading and writing are separate, so that a command that
 * observes cannot remove.
 */

import type { HostError } from "./errors.ts";
import type { ContainerId, ImageId, SandboxId } from "./ids.ts";
import type { ImageConfig, Ledger } from "./ledger.ts";
import type { WritableLayers } from "./reports.ts";
import type {
  Clocks,
  Container,
  DanglingLogLink,
  DiskReading,
  Filesystem,
  Image,
  KeepRules,
  LogReading,
  PodDirectory,
  PodLogDirectory,
  PodReading,
  RuntimeInfo,
  Sandbox,
} from "./snapshot.ts";
import type { Instant } from "./time.ts";

/** The result of one `PodSandboxStatus`, just before a removal or a pre-stop request. */
export interface SandboxDetail {
  readonly id: SandboxId;
  readonly state: Sandbox["state"];
  /** The pod's IP address; "" if it uses the network of the node, or has lost its address. */
  readonly address: string;
}

/** What one `ContainerStatus` adds to the list. Mounts never change, so they are stored. */
export interface ContainerDetail {
  readonly id: ContainerId;
  /** References of images that are mounted as volumes, as given at creation. */
  readonly imageVolumes: readonly string[];
  readonly state: Container["state"];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

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
  /** `null`: the runtime has no such image. */
  imageStatus(reference: string, signal: AbortSignal): Promise<Image | null>;
  /** The sizes of writable layers; `null` if the runtime does not report them. */
  writableLayers(signal: AbortSignal): Promise<WritableLayers | null>;
  /** What the image with exactly this ID was built from; `null` if the runtime has no such image. */
  imageConfig(id: ImageId, signal: AbortSignal): Promise<ImageConfig | null>;
  reportedFilesystems(signal: AbortSignal): Promise<ReportedFilesystems>;
}

/** Has the filesystem of a path commit what it holds back; returns after 5 s at the latest. Never rejects. */
export type CommitFilesystem = (path: string) => Promise<void>;

/** The machine's filesystems. Throws `HostError` of kind `stat`. */
export interface DiskReader {
  /** One entry per device, with its roles; the node's own root directory gives `nodefs`. */
  filesystems(reported: ReportedFilesystems): Promise<readonly Filesystem[]>;
  measure(path: string): Promise<DiskReading>;
}

/** Other facts of the machine. */
export interface HostReader {
  clocks(): Clocks;
  /** Never throws for invalid rules: these are in `problems`. */
  keepRules(): Promise<KeepRules>;
  /** Never throws: a source that fails is a reading of kind `failed`. */
  pods(signal: AbortSignal): Promise<PodReading>;
  /** The kubelet's directories of pods, as they changed since then; `null`: there are none. Throws `HostError`. */
  podDirectories(since: Instant): Promise<readonly PodDirectory[] | null>;
  /** `null` if the log directory does not exist. Never throws on read errors: these are a reading of kind `failed`. */
  logs(): Promise<LogReading | null>;
}

/** The writing half of the runtime. Every call has a deadline and throws `RuntimeError`; NotFound is a success. */
export interface RuntimeWriter {
  removeImage(id: ImageId): Promise<void>;
  /** The deadline is the configured one plus `graceSeconds`. Cancelled when `signal` aborts. */
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
  /** Others were left when the signal aborted. */
  readonly isStopped?: boolean;
  /** Why others were left: the first reason. */
  readonly failure?: HostError;
}

/** Deletes log files, only below the log roots and without following links. Throws `HostError` if it must not, or cannot begin. */
export interface LogRemover {
  /** A container's log and its rotations. */
  removeContainerLogs(container: Container): Promise<RemovedFiles>;
  /** `false`: it is gone, or dangles no more. */
  removeLink(link: DanglingLogLink): Promise<boolean>;
  /** A deleted pod's whole directory, or as much of it as can be deleted before the signal aborts; `null`: it is gone. */
  removePodLogs(directory: PodLogDirectory, signal: AbortSignal): Promise<RemovedFiles | null>;
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

/** Calls pods only; like the kubelet, it does not verify their certificates. Throws `HostError` of kind `http`. */
export interface HookCaller {
  /** Resolves with the response's status, whatever it is; does not follow redirects. */
  get(request: HookRequest, signal: AbortSignal): Promise<number>;
}

/** The ledger of the process that holds the node. */
export interface LedgerMemory {
  current(): Ledger;
  /** In memory. */
  replace(next: Ledger): void;
  /** Has it written, which never delays or fails the caller. */
  save(): void;
}

/** Time, injected so that tests need not wait. */
export interface Timer {
  /** Monotonic nanoseconds. */
  monotonicNs(): bigint;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The kubelet's address and crigc's credentials. */
export interface KubeletOptions {
  /** `https://127.0.0.1:10250`, or `http://…` for the read-only port; without a slash at its end. */
  readonly endpoint: string;
  /** PEM; `null` only over `http:`. */
  readonly caFile: string | null;
  readonly clientCertFile: string | null;
  readonly clientKeyFile: string | null;
  readonly tokenFile: string | null;
  readonly timeoutMs: number;
}

export interface CallRecord {
  /** `ListImages`. */
  readonly method: string;
  /** The name of the gRPC code: `OK`, `NOT_FOUND`. */
  readonly code: string;
}

/**
 * How much is logged. Warnings and errors always; 0: what an operator must know. 1: passes that removed something. 2
 * (default): removals, and passes that ended otherwise than the one before. 3: skipped removals, and what says nothing new.
 */
export type Level = "error" | "warning" | 0 | 1 | 2 | 3;
