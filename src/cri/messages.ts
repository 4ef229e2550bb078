/**
 * The part of CRI v1 that crigc uses, with the names and numbers of `runtime.v1`; what is not read or sent is not declared. A
 * test compares it with `proto/runtime-v1.proto`.
 */
import {
  bool,
  type Decoded,
  int32,
  int64,
  many,
  type Message,
  message,
  one,
  seconds,
  strings,
  text,
  texts,
  uint32,
  uint64,
} from "./codec.ts";

export interface Method<Request, Answer> {
  /** As CRI names it. */
  readonly name: string;
  /** The HTTP/2 path: `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  /** What the call does, to follow "cannot". */
  readonly doing: string;
  /** The response is any number of messages. */
  readonly isStream: boolean;
  readonly request: Message<Request>;
  /** Of lists, which have entries and nothing else: one entry. */
  readonly answer: Message<Answer>;
}

export type AnyMethod = Omit<Method<unknown, unknown>, "request" | "answer">;

function method<Request, Answer>(
  path: string,
  doing: string,
  [request, answer]: readonly [request: Message<Request>, answer: Message<Answer>],
): Method<Request, Answer> {
  const name = path.slice(path.indexOf("/") + 1);
  const isStream = name.startsWith("Stream");
  return { name, path: `/runtime.v1.${path}`, doing, isStream, request, answer };
}

/** Enums are numbers, so that unknown values stay visible. */
const state = int32;
const imageSpec = message({ image: text(1) });
const stateFilter = message({ state: state(1) });

// Nanoseconds since 1970 are beyond what a number holds exactly.
const sandbox = message({
  id: text(1),
  metadata: one(
    2,
    message({ name: text(1), uid: text(2), namespace: text(3), attempt: uint32(4) }),
  ),
  state: state(3),
  created_at: int64(4),
  labels: strings(5),
});
const container = message({
  id: text(1),
  pod_sandbox_id: text(2),
  metadata: one(3, message({ name: text(1), attempt: uint32(2) })),
  image: one(4, imageSpec),
  image_ref: text(5),
  state: state(6),
  created_at: int64(7),
  labels: strings(8),
  image_id: text(10),
});
const containerStatus = message({
  id: text(1),
  state: state(3),
  labels: strings(12),
  annotations: strings(13),
  // With an image where it is mounted as a volume.
  mounts: many(14, message({ image: one(9, imageSpec) })),
});
const sandboxStatus = message({
  id: text(1),
  state: state(3),
  // No address for pods in the node's own network.
  network: one(5, message({ ip: text(1) })),
});
const image = message({
  id: text(1),
  repo_tags: texts(2),
  repo_digests: texts(3),
  size: uint64(4),
  pinned: bool(8),
});
const amount = message({ value: uint64(1) });
const filesystemUsage = message({
  // A directory inside the filesystem, not where it is mounted.
  fs_id: one(2, message({ mountpoint: text(1) })),
  used_bytes: one(3, amount),
  inodes_used: one(4, amount),
});
const containerStats = message({
  attributes: one(1, message({ id: text(1) })),
  // What the container itself wrote over its image.
  writable_layer: one(4, filesystemUsage),
});

const none = message({});
const sandboxId = message({ pod_sandbox_id: text(1) });
const containerId = message({ container_id: text(1) });
const sandboxFilter = message({ filter: one(1, message({ state: one(2, stateFilter) })) });
const containerFilter = message({
  filter: one(1, message({ state: one(2, stateFilter), pod_sandbox_id: text(3) })),
});
// A version has a leading "v" from containerd.
const version = message({
  runtime_name: text(2),
  runtime_version: text(3),
  runtime_api_version: text(4),
});
// JSON documents by name; "config" names the sandbox image on containerd 1.x and CRI-O.
const status = message({ info: strings(2) });
// No image where the runtime has none of that name; "info" only if verbose.
const imageStatus = message({ image: one(1, image), info: strings(2) });
const filesystems = message({
  image_filesystems: many(1, filesystemUsage),
  container_filesystems: many(2, filesystemUsage),
});

/** By their names in CRI. */
export const methods = {
  Version: method("RuntimeService/Version", "get the runtime's version", [none, version]),
  Status: method("RuntimeService/Status", "get the runtime's status", [
    message({ verbose: bool(1) }),
    status,
  ]),
  ListPodSandbox: method("RuntimeService/ListPodSandbox", "list the sandboxes", [
    sandboxFilter,
    sandbox,
  ]),
  StreamPodSandboxes: method("RuntimeService/StreamPodSandboxes", "list the sandboxes", [
    none,
    sandbox,
  ]),
  PodSandboxStatus: method("RuntimeService/PodSandboxStatus", "read the status of sandbox", [
    sandboxId,
    message({ status: one(1, sandboxStatus) }),
  ]),
  StopPodSandbox: method("RuntimeService/StopPodSandbox", "stop sandbox", [sandboxId, none]),
  RemovePodSandbox: method("RuntimeService/RemovePodSandbox", "remove sandbox", [sandboxId, none]),
  ListContainers: method("RuntimeService/ListContainers", "list the containers", [
    containerFilter,
    container,
  ]),
  StreamContainers: method("RuntimeService/StreamContainers", "list the containers", [
    none,
    container,
  ]),
  ContainerStatus: method("RuntimeService/ContainerStatus", "read the status of container", [
    containerId,
    message({ status: one(1, containerStatus) }),
  ]),
  ListContainerStats: method(
    "RuntimeService/ListContainerStats",
    "list the statistics of containers",
    [none, message({ stats: many(1, containerStats) })],
  ),
  StopContainer: method("RuntimeService/StopContainer", "stop container", [
    message({ container_id: text(1), timeout: seconds(2) }),
    none,
  ]),
  RemoveContainer: method("RuntimeService/RemoveContainer", "remove container", [
    containerId,
    none,
  ]),
  ExecSync: method("RuntimeService/ExecSync", "run the pre-stop command in container", [
    message({ container_id: text(1), cmd: texts(2), timeout: seconds(3) }),
    message({ exit_code: int32(3) }),
  ]),
  ListImages: method("ImageService/ListImages", "list the images", [none, image]),
  StreamImages: method("ImageService/StreamImages", "list the images", [none, image]),
  ImageStatus: method("ImageService/ImageStatus", "look up image", [
    message({ image: one(1, imageSpec), verbose: bool(2) }),
    imageStatus,
  ]),
  RemoveImage: method("ImageService/RemoveImage", "remove image", [
    message({ image: one(1, imageSpec) }),
    none,
  ]),
  ImageFsInfo: method("ImageService/ImageFsInfo", "get the image filesystems", [none, filesystems]),
};

export type SandboxMessage = Decoded<typeof sandbox>;
export type ContainerMessage = Decoded<typeof container>;
export type ImageMessage = Decoded<typeof image>;
export type FilesystemUsage = Decoded<typeof filesystemUsage>;
export type AnswerTo<Name extends keyof typeof methods> = (typeof methods)[Name] extends {
  readonly answer: Message<infer Value>;
}
  ? Value
  : never;
