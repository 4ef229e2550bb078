/** The state of the node at one moment: plain facts, no decisions. */

import type { ChainId, ContainerId, ImageId, PodUid, SandboxId } from "./ids.ts";
import type { ContainerCreation } from "./ledger.ts";
import type { Duration, Instant } from "./time.ts";
import { compared } from "./values.ts";

/** An image as the runtime lists it. */
export interface Image {
  readonly id: ImageId;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  /** As reported: compressed on some runtimes, and shared layers count for each image. */
  readonly sizeBytes: bigint;
  readonly pinned: boolean;
}

/** By size, then ID, both descending: the kubelet's order. */
export const largerFirst = (one: Image, other: Image): number =>
  compared(other.sizeBytes, one.sizeBytes) || compared(other.id, one.id);

/** What an image was built from, by its verbose status; it never changes for an image ID. */
export interface ImageOrigin {
  /** From the first layer to the last; `null` if the runtime does not say. */
  readonly chain: readonly ChainId[] | null;
  /** When the image was built; `null` if the runtime does not say. */
  readonly builtAt: Instant | null;
}

export type ContainerState = "created" | "running" | "exited" | "unknown";

/** A container as the runtime lists it; of its labels, only those that Kubernetes sets are kept, as fields. */
export interface Container {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  /** `metadata.name`. */
  readonly name: string;
  readonly attempt: number;
  /** Label `io.kubernetes.pod.uid` of the container itself, else "". */
  readonly podUid: PodUid;
  readonly podName: string;
  readonly podNamespace: string;
  /** `image.image`: the name that the container was created from. */
  readonly imageName: string;
  /** `image_ref`: a digest or an ID, by runtime. */
  readonly imageRef: string;
  /** `image_id`: empty on older runtimes. */
  readonly imageId: string;
  readonly state: ContainerState;
  readonly createdAt: Instant;
}

export type SandboxState = "ready" | "not-ready";

export interface Sandbox {
  readonly id: SandboxId;
  /** Label `io.kubernetes.pod.uid`; "" if Kubernetes did not create the sandbox. */
  readonly podUid: PodUid;
  /** `metadata.uid`, which other tools set too. */
  readonly metadataUid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly attempt: number;
  readonly state: SandboxState;
  readonly createdAt: Instant;
}

/** The result of one `PodSandboxStatus`, just before a removal or a pre-stop request. */
export interface SandboxDetail {
  readonly id: SandboxId;
  readonly state: SandboxState;
  /** The pod's IP address; "" if it has none of its own (the node's network) or lost it. */
  readonly address: string;
}

/** What one `ContainerStatus` adds to the list. Mounts never change, and the end comes once, so both are stored. */
export interface ContainerDetail {
  readonly id: ContainerId;
  /** References of images that are mounted as volumes, as given at creation. */
  readonly imageVolumes: readonly string[];
  /** When the container ended; `null` if it has not, or the runtime does not say. */
  readonly finishedAt: Instant | null;
  readonly logPath: string;
  readonly state: ContainerState;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What is known about a container's image volumes. */
export type ImageVolumes =
  | { readonly kind: "known"; readonly references: readonly string[] }
  /** The container was removed between the list and the status. */
  | { readonly kind: "gone" }
  /** The runtime cannot mount images, so there is nothing to know. */
  | { readonly kind: "unsupported" }
  | { readonly kind: "unknown"; readonly message: string };

/** The result of `ImageStatus` for a reference that no listed image has. */
export type Resolution =
  | { readonly kind: "image"; readonly id: ImageId }
  /** The runtime has no such image. */
  | { readonly kind: "absent" }
  /** The call failed, so what the reference means is unknown. */
  | { readonly kind: "unknown"; readonly message: string };

export interface RuntimeInfo {
  /** `unix:///…`, as used for connecting. */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  /** `containerd`, `cri-o`, `docker`. */
  readonly name: string;
  /** Without a leading `v`: `1.7.24`. */
  readonly version: string;
  readonly apiVersion: string;
  /** Names that `Status(verbose)` gives the sandbox image; empty if it names none. */
  readonly sandboxImages: readonly string[];
  /** Tells one start of the runtime from another; "" if unknown. */
  readonly instance: string;
}

export type FilesystemRole = "imagefs" | "containerfs" | "nodefs";

/** One filesystem of the node, measured by statfs; one entry per device, however many roles it has. */
export interface Filesystem {
  readonly roles: readonly FilesystemRole[];
  /** The directory that was measured: the runtime's `fs_id.mountpoint`, or the kubelet's root directory. */
  readonly path: string;
  /** Where the filesystem is mounted, by mountinfo; the path itself if unknown. */
  readonly mountpoint: string;
  /** `major:minor` of the device. */
  readonly device: string;
  readonly capacityBytes: bigint;
  /** To unprivileged users: space reserved for root counts as used. */
  readonly availableBytes: bigint;
  /** 0 if the filesystem has no inode limit. */
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  /** `used_bytes` of the image filesystem's entry; `null` if the runtime does not report it. */
  readonly imageUsedBytes: bigint | null;
  /** `inodes_used` of the same entry; absent or `null` if the runtime does not report it. */
  readonly imageInodesUsed?: bigint | null;
  /** `used_bytes` of the container filesystem's entry; `null` if the runtime does not report it. */
  readonly containerUsedBytes: bigint | null;
}

/** A filesystem with the time of its measurement. */
export interface MeasuredFilesystem extends Filesystem {
  readonly measuredAt: Instant;
}

/** The pods of this node as the pod source knows them, and the manifests of static pods; judged in policy. */
export type PodReading = (
  | { readonly kind: "ready"; readonly source: PodSource; readonly pods: readonly PodRecordSeen[] }
  /** Without a source no pod counts as deleted. */
  | { readonly kind: "none"; readonly why: string }
  | { readonly kind: "failed"; readonly source: PodSource; readonly message: string }
) & { readonly manifests?: readonly Manifest[] };

/** A file from which the kubelet runs a static pod. */
export interface Manifest {
  readonly path: string;
  /** Every image that it names. */
  readonly images: readonly string[];
  /**
   * `invalid`: it is not a pod, for example half-written, and its images are what its text names. `unreadable`: why it
   * could not be read at all.
   */
  readonly fault: { readonly kind: "invalid" | "unreadable"; readonly message: string } | null;
}

export type PodSource = "cri" | "kubelet-dir" | "kubelet-api";

export interface PodRecordSeen {
  readonly uid: PodUid;
  /**
   * `api`, `static`: the kubelet lists it, from its API server or from a manifest of the node; `listed`: the kubelet
   * does not say which. `directory`: only the directory of the kubelet's pods knows it.
   */
  readonly origin: "api" | "static" | "listed" | "directory";
  /** Succeeded or Failed, according to the kubelet; false if only a directory is known. */
  readonly finished: boolean;
  /** Evicted: its content is removed although the pod is listed. */
  readonly evicted: boolean;
  /** Images that the pod's specification names, init and volume images included. */
  readonly images: readonly string[];
}

/** An entry of the pod log directory whose name and type are those of a pod's logs. */
export interface PodLogDirectory {
  /** The entry's name: `NAMESPACE_NAME_UID`. */
  readonly entry: string;
  readonly uid: PodUid;
}

/** A link in the legacy directory of container logs whose target does not exist. */
export interface DanglingLogLink {
  readonly entry: string;
  /** From the name; shorter than an ID if the name was truncated. */
  readonly containerId: string;
}

export interface LogFacts {
  readonly kind: "read";
  readonly podLogsDirectory: string;
  readonly podLogs: readonly PodLogDirectory[];
  /** Entries that belong to no pod: reported, never touched. */
  readonly strays: readonly string[];
  readonly danglingLinks: readonly DanglingLogLink[];
  /** The size of the log directory's files, if counted. */
  readonly sizeBytes: bigint | null;
}

/** Both log directories, or neither: if one is unreadable, nothing is deleted in either. */
export type LogReading = LogFacts | { readonly kind: "failed"; readonly message: string };

/** `null` without a readable log directory. */
export const logFactsOf = (logs: LogReading | null): LogFacts | null =>
  logs?.kind === "read" ? logs : null;

/** One keep rule with its source. */
export interface KeepRule {
  readonly pattern: string;
  /** `--keep`, or the file and line: `/etc/crigc/keep.d/base.list:3`. */
  readonly source: string;
  /** The runtime pinned the image when the baseline was written. */
  readonly pinned?: boolean;
}

/** An invalid keep rule or keep file. */
export interface KeepProblem {
  readonly source: string;
  readonly message: string;
}

export interface KeepRules {
  readonly rules: readonly KeepRule[];
  /** Not empty: no image is removed. */
  readonly problems: readonly KeepProblem[];
  /** Directories from which rules were read, so that a missing one is noticed. */
  readonly directoriesRead: readonly string[];
}

/** The machine's clocks at the moment of the snapshot. */
export interface Clocks {
  readonly wall: Instant;
  /** Since the boot, suspended time included; immune to changes of the wall clock. */
  readonly uptime: Duration;
  /** Changes with every boot; if it cannot be read, an ID of this process. */
  readonly bootId: string;
}

/** Begins the ID that stands for the boot within one process. */
export const PROCESS_BOOT = "process:";
export const isBootId = (id: string): boolean => id !== "" && !id.startsWith(PROCESS_BOOT);

/** Read after the lists: a creation that begins in between must not be missed. */
export interface CreationReading {
  /** After the marks were read. */
  readonly clocks: Clocks;
  readonly inProgress: readonly ContainerCreation[];
}

/**
 * A node at one moment. Each list is complete: a failed list is an error, never a shorter snapshot. Parts that only
 * some passes need record their own read errors.
 */
export interface Snapshot {
  /** Taken before the first call. */
  readonly clocks: Clocks;
  /** The wall clock after the last call. */
  readonly observedAt: Instant;
  readonly runtime: RuntimeInfo;
  readonly images: readonly Image[];
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
  /** By container ID, for every listed container. */
  readonly imageVolumes: ReadonlyMap<ContainerId, ImageVolumes>;
  /** Known ends of dead containers, read now or from the ledger. */
  readonly containerEnds: ReadonlyMap<ContainerId, Instant>;
  /** By reference, for every reference that no listed image has. */
  readonly resolutions: ReadonlyMap<string, Resolution>;
  /** Images that sandboxes' own status names, by sandbox. */
  readonly sandboxImages: ReadonlyMap<SandboxId, string>;
  readonly filesystems: readonly Filesystem[];
  readonly pods: PodReading;
  /** `null`: not read, or none in progress. */
  readonly creations: CreationReading | null;
  /** `null`: there is no directory of pod logs, or it was not requested. */
  readonly logs: LogReading | null;
  readonly keep: KeepRules;
}
