/** The state of the node at one moment: plain facts, no decisions. */

import type { ContainerId, ImageId, PodUid, SandboxId } from "./ids.ts";
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
  readonly state: "created" | "running" | "exited" | "unknown";
  readonly createdAt: Instant;
}
export type ContainerState = Container["state"];

export interface Sandbox {
  readonly id: SandboxId;
  /** Label `io.kubernetes.pod.uid`; "" if Kubernetes did not create the sandbox. */
  readonly podUid: PodUid;
  /** `metadata.uid`, which other tools set too. */
  readonly metadataUid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly attempt: number;
  readonly state: "ready" | "not-ready";
  readonly createdAt: Instant;
}
export type SandboxState = Sandbox["state"];

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
}

/** The result of statfs for a path. */
export interface DiskReading {
  readonly capacityBytes: bigint;
  /** To unprivileged users: space reserved for root counts as used. */
  readonly availableBytes: bigint;
  /** 0 if the filesystem has no inode limit. */
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  /** With what is reserved for root, which the runtime may use; absent: as available. */
  readonly freeBytes?: bigint;
  /** What the filesystem reserves for root; 5 % of an ext4 where nothing tells. */
  readonly reservedBytes?: bigint;
  /** Freed space appears only with the filesystem's next commit (btrfs, ZFS). */
  readonly freesOnCommit?: true;
}

/** One filesystem of the node, measured by statfs; one entry per device, however many roles it has. */
export interface Filesystem extends Omit<DiskReading, "freesOnCommit"> {
  readonly roles: readonly ("imagefs" | "containerfs" | "nodefs")[];
  /** The directory that was measured: the runtime's `fs_id.mountpoint`, or the kubelet's root directory. */
  readonly path: string;
  /** Where the filesystem is mounted, by mountinfo; the path itself if unknown. */
  readonly mountpoint: string;
  /** `major:minor` of the device. */
  readonly device: string;
  /** `used_bytes` of the image filesystem's entry; `null` if the runtime does not report it. */
  readonly imageUsedBytes: bigint | null;
  /** `inodes_used` of the same entry; absent or `null` if the runtime does not report it. */
  readonly imageInodesUsed?: bigint | null;
  /** `used_bytes` of the container filesystem's entry; `null` if the runtime does not report it. */
  readonly containerUsedBytes: bigint | null;
  /** Why it could not be measured, so that its figures are 0; only of one without images. */
  readonly unmeasured?: string;
}
export type FilesystemRole = Filesystem["roles"][number];

export type PodSource = "cri" | "kubelet-dir";

/** Images that a pod's specification names: of all its containers, and of image volumes. */
export interface PodImages {
  readonly uid: PodUid;
  readonly images: readonly string[];
}

/** With `--kubelet-endpoint`: additional uses, which decide nothing else. */
export interface PodSpecs {
  readonly pods: readonly PodImages[];
  /** Why the kubelet did not answer; then `pods` are those last read whose directories exist. */
  readonly error: string | null;
}

/** The pods of this node as the pod source knows them, and the specifications of the kubelet's pods; judged in policy. */
export type PodReading = { readonly specs?: PodSpecs } & (
  | { readonly kind: "ready"; readonly source: PodSource; readonly pods: readonly PodUid[] }
  /** Without a source no pod counts as deleted. */
  | { readonly kind: "none"; readonly why: string }
  | { readonly kind: "failed"; readonly source: PodSource; readonly message: string }
);

/** An entry of the pod log directory whose name and type are those of a pod's logs. */
export interface PodLogDirectory {
  /** The entry's name: `NAMESPACE_NAME_UID`. */
  readonly entry: string;
  readonly uid: PodUid;
}

/** A link in the directory of container logs to a container's log that does not exist. */
export interface DanglingLogLink {
  readonly entry: string;
  readonly podUid: PodUid;
  readonly name: string;
  readonly attempt: number;
}

/** Both log directories, or neither: if one is unreadable, nothing is deleted in either. */
export type LogReading = LogFacts | { readonly kind: "failed"; readonly message: string };

export interface LogFacts {
  readonly kind: "read";
  readonly podLogsDirectory: string;
  readonly podLogs: readonly PodLogDirectory[];
  /** Entries that belong to no pod: reported, never touched. */
  readonly strays: readonly string[];
  readonly danglingLinks: readonly DanglingLogLink[];
}

/** `null` without a readable log directory. */
export const logFactsOf = (logs: LogReading | null): LogFacts | null =>
  logs?.kind === "read" ? logs : null;

/** One keep rule with its source. */
export interface KeepRule {
  readonly pattern: string;
  /** `--keep`, or the file and line: `/etc/crigc/keep.d/base.list:3`. */
  readonly source: string;
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
}

/** The machine's clocks at the moment of the snapshot. */
export interface Clocks {
  readonly wall: Instant;
  /** Since the boot, suspended time included; immune to changes of the wall clock. */
  readonly uptime: Duration;
  /** Changes with every boot; if it cannot be read, an ID of this process. */
  readonly bootId: string;
}

/** The kubelet's directory of a pod, `ROOT/pods/UID`. */
export interface PodDirectory {
  readonly uid: PodUid;
  readonly bornAt: Instant;
  /** The files in its containers' directories; those of a container without a recent change are left out. */
  readonly files: readonly { readonly container: string; readonly bornAt: Instant }[];
}

/** A node at one moment. Each list is complete: a failed one is an error. Optional parts carry their own error. */
export interface Snapshot {
  /** Read after the lists: an image that arrived while a slow runtime answered must not count as older than it is. */
  readonly clocks: Clocks;
  /** The wall clock after the last call. */
  readonly observedAt: Instant;
  readonly runtime: RuntimeInfo;
  readonly images: readonly Image[];
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
  /** By container ID, for every listed container. */
  readonly imageVolumes: ReadonlyMap<ContainerId, ImageVolumes>;
  /** By reference, for every reference that no listed image has. */
  readonly resolutions: ReadonlyMap<string, Resolution>;
  readonly filesystems: readonly Filesystem[];
  readonly pods: PodReading;
  /** Read after the lists; `null` without the kubelet's directory of pods, absent if not read. */
  readonly podDirectories?: readonly PodDirectory[] | null;
  /** `null`: there is no directory of pod logs, or it was not requested. */
  readonly logs: LogReading | null;
  readonly keep: KeepRules;
}
