/** The state of the node at one moment: plain facts, no decisions. */

import {
  branded,
  byKind,
  bytes,
  count,
  durationNs,
  flag,
  list,
  mapBy,
  nullable,
  type Of,
  oneOf,
  optional,
  record,
  type RecordOf,
  text,
  texts,
  time,
} from "./codec.ts";
import { containerId, imageId, podUid, sandboxId } from "./ids.ts";
import { compared } from "./values.ts";

/** An image as the runtime lists it. */
const image = record({
  id: branded(imageId),
  repoTags: texts,
  repoDigests: texts,
  /** As reported: compressed on some runtimes, and shared layers count for each image. */
  sizeBytes: bytes,
  pinned: flag,
});
export type Image = Of<typeof image>;

/** By size, then ID, both descending: the kubelet's order. */
export const largerFirst = (one: Image, other: Image): number =>
  compared(other.sizeBytes, one.sizeBytes) || compared(other.id, one.id);

/** A container as the runtime lists it; of its labels, only those that Kubernetes sets are kept, as fields. */
const container = record({
  id: branded(containerId),
  sandboxId: branded(sandboxId),
  /** `metadata.name`. */
  name: text,
  attempt: count,
  /** Label `io.kubernetes.pod.uid` of the container itself, else "". */
  podUid: branded(podUid),
  podName: text,
  podNamespace: text,
  /** `image.image`: the name that the container was created from. */
  imageName: text,
  /** `image_ref`: a digest or an ID, by runtime. */
  imageRef: text,
  /** `image_id`: empty on older runtimes. */
  imageId: text,
  state: oneOf("created", "running", "exited", "unknown"),
  createdAt: time,
});
export type Container = Of<typeof container>;
export type ContainerState = Container["state"];

const sandbox = record({
  id: branded(sandboxId),
  /** Label `io.kubernetes.pod.uid`; "" if Kubernetes did not create the sandbox. */
  podUid: branded(podUid),
  /** `metadata.uid`, which other tools set too. */
  metadataUid: branded(podUid),
  name: text,
  namespace: text,
  attempt: count,
  state: oneOf("ready", "not-ready"),
  createdAt: time,
});
export type Sandbox = Of<typeof sandbox>;
export type SandboxState = Sandbox["state"];

/** What is known about a container's image volumes. */
const imageVolumes = byKind({
  known: { references: texts },
  /** The container was removed between the list and the status. */
  gone: {},
  /** The runtime cannot mount images, so there is nothing to know. */
  unsupported: {},
  unknown: { message: text },
});
export type ImageVolumes = Of<typeof imageVolumes>;

/** The result of `ImageStatus` for a reference that no listed image has. */
const resolution = byKind({
  image: { id: branded(imageId) },
  /** The runtime has no such image. */
  absent: {},
  /** The call failed, so what the reference means is unknown. */
  unknown: { message: text },
});
export type Resolution = Of<typeof resolution>;

const runtimeInfo = record({
  /** `unix:///…`, as used for connecting. */
  endpoint: text,
  imageEndpoint: text,
  /** `containerd`, `cri-o`, `docker`. */
  name: text,
  /** Without a leading `v`: `1.7.24`. */
  version: text,
  apiVersion: text,
  /** Names that `Status(verbose)` gives the sandbox image; empty if it names none. */
  sandboxImages: texts,
});
export type RuntimeInfo = Of<typeof runtimeInfo>;

/** One filesystem of the node, measured by statfs; one entry per device, however many roles it has. */
export const filesystemFields = {
  roles: list(oneOf("imagefs", "containerfs", "nodefs")),
  /** The directory that was measured: the runtime's `fs_id.mountpoint`, or the kubelet's root directory. */
  path: text,
  /** Where the filesystem is mounted, by mountinfo; the path itself if unknown. */
  mountpoint: text,
  /** `major:minor` of the device. */
  device: text,
  capacityBytes: bytes,
  /** To unprivileged users: space reserved for root counts as used. */
  availableBytes: bytes,
  /** With what is reserved for root, which the runtime may use; absent: not measured. */
  freeBytes: optional(bytes),
  /** What the filesystem reserves for root; 5 % of an ext4 where nothing tells. */
  reservedBytes: optional(bytes),
  /** 0 if the filesystem has no inode limit. */
  inodes: bytes,
  inodesFree: bytes,
  /** `used_bytes` of the image filesystem's entry; `null` if the runtime does not report it. */
  imageUsedBytes: nullable(bytes),
  /** `inodes_used` of the same entry; absent or `null` if the runtime does not report it. */
  imageInodesUsed: optional(nullable(bytes)),
  /** `used_bytes` of the container filesystem's entry; `null` if the runtime does not report it. */
  containerUsedBytes: nullable(bytes),
  /** Why it could not be measured, so that its figures are 0; only of one without images. */
  unmeasured: optional(text),
};
export type Filesystem = RecordOf<typeof filesystemFields>;
export type FilesystemRole = Filesystem["roles"][number];

const podSource = oneOf("cri", "kubelet-dir");
export type PodSource = Of<typeof podSource>;

/** Images that a pod's specification names: of all its containers, and of image volumes. */
const podImages = record({ uid: branded(podUid), images: texts });
export type PodImages = Of<typeof podImages>;

/** With `--kubelet-endpoint`: additional uses, which decide nothing else. */
const podSpecs = record({
  pods: list(podImages),
  /** Why the kubelet did not answer; then `pods` are those last read whose directories exist. */
  error: nullable(text),
});
export type PodSpecs = Of<typeof podSpecs>;

const specs = optional(podSpecs);

/** The pods of this node as the pod source knows them, and the specifications of the kubelet's pods; judged in policy. */
const podReading = byKind({
  ready: { source: podSource, pods: list(branded(podUid)), specs },
  /** Without a source no pod counts as deleted. */
  none: { why: text, specs },
  failed: { source: podSource, message: text, specs },
});
export type PodReading = Of<typeof podReading>;

/** An entry of the pod log directory whose name and type are those of a pod's logs. */
const podLogDirectory = record({
  /** The entry's name: `NAMESPACE_NAME_UID`. */
  entry: text,
  uid: branded(podUid),
});
export type PodLogDirectory = Of<typeof podLogDirectory>;

/** A link in the directory of container logs to a container's log that does not exist. */
const danglingLogLink = record({
  entry: text,
  podUid: branded(podUid),
  name: text,
  attempt: count,
});
export type DanglingLogLink = Of<typeof danglingLogLink>;

/** Both log directories, or neither: if one is unreadable, nothing is deleted in either. */
const logReading = byKind({
  read: {
    podLogsDirectory: text,
    podLogs: list(podLogDirectory),
    /** Entries that belong to no pod: reported, never touched. */
    strays: texts,
    danglingLinks: list(danglingLogLink),
    /** The size of the log directory's files, if counted. */
    sizeBytes: nullable(bytes),
  },
  failed: { message: text },
});
export type LogReading = Of<typeof logReading>;
export type LogFacts = Extract<LogReading, { kind: "read" }>;

/** `null` without a readable log directory. */
export const logFactsOf = (logs: LogReading | null): LogFacts | null =>
  logs?.kind === "read" ? logs : null;

/** One keep rule with its source. */
const keepRule = record({
  pattern: text,
  /** `--keep`, or the file and line: `/etc/crigc/keep.d/base.list:3`. */
  source: text,
});
export type KeepRule = Of<typeof keepRule>;

/** An invalid keep rule or keep file. */
const keepProblem = record({
  source: text,
  message: text,
});
export type KeepProblem = Of<typeof keepProblem>;

const keepRules = record({
  rules: list(keepRule),
  /** Not empty: no image is removed. */
  problems: list(keepProblem),
});
export type KeepRules = Of<typeof keepRules>;

/** The machine's clocks at the moment of the snapshot. */
const clocks = record({
  wall: time,
  /** Since the boot, suspended time included; immune to changes of the wall clock. */
  uptime: durationNs,
  /** Changes with every boot; if it cannot be read, an ID of this process. */
  bootId: text,
});
export type Clocks = Of<typeof clocks>;

/** The kubelet's directory of a pod, `ROOT/pods/UID`. */
const podDirectory = record({
  uid: branded(podUid),
  bornAt: time,
  /** The files in its containers' directories; those of a container without a recent change are left out. */
  files: list(record({ container: text, bornAt: time })),
});
export type PodDirectory = Of<typeof podDirectory>;

/** A node at one moment. Each list is complete: a failed one is an error. Parts that only some passes need record their own. */
export const snapshotCodec = record({
  /** Read after the lists: an image that arrived while a slow runtime answered must not count as older than it is. */
  clocks: clocks,
  /** The wall clock after the last call. */
  observedAt: time,
  runtime: runtimeInfo,
  images: list(image),
  containers: list(container),
  sandboxes: list(sandbox),
  /** By container ID, for every listed container. */
  imageVolumes: mapBy("id", containerId, imageVolumes),
  /** By reference, for every reference that no listed image has. */
  resolutions: mapBy("reference", String, resolution),
  filesystems: list(record(filesystemFields)),
  pods: podReading,
  /** Read after the lists; `null` without the kubelet's directory of pods, absent if not read. */
  podDirectories: optional(nullable(list(podDirectory))),
  /** `null`: there is no directory of pod logs, or it was not requested. */
  logs: nullable(logReading),
  keep: keepRules,
});
export type Snapshot = Of<typeof snapshotCodec>;

/** The result of statfs for a path. */
export interface DiskReading {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  /** With what is reserved for root, which the runtime may use; absent: as available. */
  readonly freeBytes?: bigint;
  readonly reservedBytes?: bigint;
  /** Freed space appears only with the filesystem's next commit (btrfs, ZFS). */
  readonly freesOnCommit?: true;
}
