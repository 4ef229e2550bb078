/**
 * The part of CRI v1 that crigc uses. `@grpc/proto-loader` writes requests by `proto/runtime-v1.proto`; responses are read by
 * tables of fields, which a test compares with it.
 */
import { type AnyDefinition, fromJSON, type MessageTypeDefinition } from "@grpc/proto-loader";

import { assert } from "../model/errors.ts";
import { once } from "../model/values.ts";
import {
  bool,
  type Decoded,
  int32,
  int64,
  many,
  type Message,
  message,
  one,
  strings,
  text,
  texts,
  uint32,
  uint64,
} from "./codec.ts";
import { readSchema } from "./schema.ts" with { type: "macro" };

export interface Method<Request, Answer> {
  /** As CRI names it. */
  readonly name: string;
  /** The HTTP/2 path: `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  /** What the call does, to follow "cannot". */
  readonly doing: string;
  /** The response is any number of messages. */
  readonly isStream: boolean;
  readonly encode: (request: Request) => Buffer;
  /** Of lists, which have entries and nothing else: one entry. */
  readonly answer: Message<Answer>;
}

export type AnyMethod = Omit<Method<unknown, unknown>, "encode" | "answer">;

const { messages, methods: declared } = readSchema();

const writers = once(() => fromJSON({ nested: messages }, { keepCase: true }));

const isMessage = (it: AnyDefinition): it is MessageTypeDefinition<object, object> =>
  it["format"] === "Protocol Buffer 3 DescriptorProto";

function method<Name extends keyof Requests, Answer>(
  name: Name,
  doing: string,
  answer: Message<Answer>,
): Method<Requests[Name], Answer> {
  const { path = "", isStream = false, request = "" } = declared[name] ?? {};
  const encode = (values: Requests[Name]): Buffer => {
    const writer = writers()[request];
    assert(writer !== undefined && isMessage(writer), `the proto declares no ${request}`);
    return writer.serialize(values);
  };
  return { name, path, doing, isStream, encode, answer };
}

type None = Readonly<Record<never, never>>;
type OfState = { readonly state: number } | null;
type OfSandbox = { readonly pod_sandbox_id: string };
type OfContainer = { readonly container_id: string };
type OfImage = { readonly image: { readonly image: string } };
type Filtered<Filter> = { readonly filter: Filter | null };

/** The fields of requests that crigc sets; `null`: none. Timeouts are in seconds. */
interface Requests {
  readonly Version: None;
  readonly Status: { readonly verbose: boolean };
  readonly ListPodSandbox: Filtered<{ readonly state: OfState }>;
  readonly StreamPodSandboxes: None;
  readonly PodSandboxStatus: OfSandbox;
  readonly StopPodSandbox: OfSandbox;
  readonly RemovePodSandbox: OfSandbox;
  readonly ListContainers: Filtered<OfSandbox & { readonly state: OfState }>;
  readonly StreamContainers: None;
  readonly ContainerStatus: OfContainer;
  readonly ListContainerStats: None;
  readonly StopContainer: OfContainer & { readonly timeout: number };
  readonly RemoveContainer: OfContainer;
  readonly ExecSync: OfContainer & { readonly cmd: readonly string[]; readonly timeout: number };
  readonly ListImages: None;
  readonly StreamImages: None;
  readonly ImageStatus: OfImage & { readonly verbose: boolean };
  readonly RemoveImage: OfImage;
  readonly ImageFsInfo: None;
}

/** Enums are numbers, so that unknown values stay visible. */
const state = int32;
const imageSpec = message({ image: text(1) });

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
  Version: method("Version", "get the runtime's version", version),
  Status: method("Status", "get the runtime's status", status),
  ListPodSandbox: method("ListPodSandbox", "list the sandboxes", sandbox),
  StreamPodSandboxes: method("StreamPodSandboxes", "list the sandboxes", sandbox),
  PodSandboxStatus: method(
    "PodSandboxStatus",
    "read the status of sandbox",
    message({ status: one(1, sandboxStatus) }),
  ),
  StopPodSandbox: method("StopPodSandbox", "stop sandbox", none),
  RemovePodSandbox: method("RemovePodSandbox", "remove sandbox", none),
  ListContainers: method("ListContainers", "list the containers", container),
  StreamContainers: method("StreamContainers", "list the containers", container),
  ContainerStatus: method(
    "ContainerStatus",
    "read the status of container",
    message({ status: one(1, containerStatus) }),
  ),
  ListContainerStats: method(
    "ListContainerStats",
    "list the statistics of containers",
    message({ stats: many(1, containerStats) }),
  ),
  StopContainer: method("StopContainer", "stop container", none),
  RemoveContainer: method("RemoveContainer", "remove container", none),
  ExecSync: method(
    "ExecSync",
    "run the pre-stop command in container",
    message({ exit_code: int32(3) }),
  ),
  ListImages: method("ListImages", "list the images", image),
  StreamImages: method("StreamImages", "list the images", image),
  ImageStatus: method("ImageStatus", "look up image", imageStatus),
  RemoveImage: method("RemoveImage", "remove image", none),
  ImageFsInfo: method("ImageFsInfo", "get the image filesystems", filesystems),
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
