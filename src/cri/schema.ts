/**
 * The part of CRI v1 that crigc uses. Names, numbers and types are the wire contract of `runtime.v1`; a field that is not
 * read or sent is not declared, so that decoding skips it. Enums are `int32`, which keeps unknown values visible.
 */

type Type = "string" | "bool" | "int32" | "uint32" | "int64" | "uint64" | Fields;

export interface Field<T extends Type = Type, Kind = "one" | "many" | "map"> {
  readonly id: number;
  /** Of a map, the type of its values; its keys are strings. */
  readonly type: T;
  readonly kind: Kind;
}

/** A message: its fields by name. */
export interface Fields {
  readonly [name: string]: Field;
}

const one = <T extends Type>(id: number, type: T): Field<T, "one"> => ({ id, type, kind: "one" });
const many = <T extends Type>(id: number, type: T): Field<T, "many"> => ({
  id,
  type,
  kind: "many",
});
const string = (id: number) => one(id, "string");
const stringMap = (id: number) => ({ id, type: "string", kind: "map" }) as const;
const bool = (id: number) => one(id, "bool");
const int32 = (id: number) => one(id, "int32");
const uint32 = (id: number) => one(id, "uint32");
/** Beyond what a number holds exactly. */
const int64 = (id: number) => one(id, "int64");
const uint64 = (id: number) => one(id, "uint64");

const imageSpec = { image: string(1) };

const sandbox = {
  id: string(1),
  metadata: one(2, {
    name: string(1),
    uid: string(2),
    namespace: string(3),
    attempt: uint32(4),
  }),
  state: int32(3),
  /** Nanoseconds since 1970. */
  created_at: int64(4),
  labels: stringMap(5),
};

const container = {
  id: string(1),
  pod_sandbox_id: string(2),
  metadata: one(3, { name: string(1), attempt: uint32(2) }),
  image: one(4, imageSpec),
  image_ref: string(5),
  state: int32(6),
  created_at: int64(7),
  labels: stringMap(8),
  image_id: string(10),
};

const containerStatus = {
  id: string(1),
  state: int32(3),
  finished_at: int64(6),
  image: one(8, imageSpec),
  image_ref: string(9),
  labels: stringMap(12),
  annotations: stringMap(13),
  /** `image` is set where an image is mounted as a volume. */
  mounts: many(14, { image: one(9, imageSpec) }),
  log_path: string(15),
  image_id: string(17),
};

const image = {
  id: string(1),
  repo_tags: many(2, "string"),
  repo_digests: many(3, "string"),
  size: uint64(4),
  pinned: bool(8),
};

const filesystemUsage = {
  /** A directory inside the filesystem, not where it is mounted. */
  fs_id: one(2, { mountpoint: string(1) }),
  used_bytes: one(3, { value: uint64(1) }),
  inodes_used: one(4, { value: uint64(1) }),
};

const stateFilter = one(2, { state: int32(1) });

/** The service of a method with "Image" in its name is ImageService, that of the others RuntimeService. */
export const methods = {
  Version: {
    request: {},
    answer: { runtime_name: string(2), runtime_version: string(3), runtime_api_version: string(4) },
  },
  /** `info`: JSON documents by name; "config" names the sandbox image on containerd 1.x and CRI-O. */
  Status: { request: { verbose: bool(1) }, answer: { info: stringMap(2) } },
  ListPodSandbox: {
    request: { filter: one(1, { state: stateFilter }) },
    answer: { items: many(1, sandbox) },
  },
  StreamPodSandboxes: { request: {}, answer: { pod_sandboxes: many(1, sandbox) } },
  PodSandboxStatus: {
    request: { pod_sandbox_id: string(1), verbose: bool(2) },
    answer: {
      /** `ip` is empty for pods in the node's own network. */
      status: one(1, {
        id: string(1),
        state: int32(3),
        network: one(5, { ip: string(1) }),
      }),
      /** "info" is a JSON document that names the sandbox's image on containerd and CRI-O. */
      info: stringMap(2),
    },
  },
  StopPodSandbox: { request: { pod_sandbox_id: string(1) }, answer: {} },
  RemovePodSandbox: { request: { pod_sandbox_id: string(1) }, answer: {} },
  ListContainers: {
    request: { filter: one(1, { state: stateFilter, pod_sandbox_id: string(3) }) },
    answer: { containers: many(1, container) },
  },
  StreamContainers: { request: {}, answer: { containers: many(1, container) } },
  ContainerStatus: {
    request: { container_id: string(1) },
    answer: { status: one(1, containerStatus) },
  },
  /** `writable_layer`: what the container itself wrote over its image. */
  ListContainerStats: {
    request: {},
    answer: {
      stats: many(1, {
        attributes: one(1, { id: string(1) }),
        writable_layer: one(4, filesystemUsage),
      }),
    },
  },
  /** Seconds until the container is killed. */
  StopContainer: { request: { container_id: string(1), timeout: int64(2) }, answer: {} },
  RemoveContainer: { request: { container_id: string(1) }, answer: {} },
  /** Seconds; 0 is no limit. */
  ExecSync: {
    request: { container_id: string(1), cmd: many(2, "string"), timeout: int64(3) },
    answer: { exit_code: int32(3) },
  },
  /** `containers_statuses`: every container of the event's pod. */
  GetContainerEvents: {
    request: {},
    answer: {
      container_id: string(1),
      container_event_type: int32(2),
      containers_statuses: many(5, containerStatus),
    },
  },
  ListImages: { request: {}, answer: { images: many(1, image) } },
  StreamImages: { request: {}, answer: { images: many(1, image) } },
  /** `info` only if verbose; "info" holds a JSON document with the layers of the image. */
  ImageStatus: {
    request: { image: one(1, imageSpec), verbose: bool(2) },
    answer: { image: one(1, image), info: stringMap(2) },
  },
  RemoveImage: { request: { image: one(1, imageSpec) }, answer: {} },
  ImageFsInfo: {
    request: {},
    answer: {
      image_filesystems: many(1, filesystemUsage),
      container_filesystems: many(2, filesystemUsage),
    },
  },
};

/** Their response is any number of messages. */
export const isStream = (method: Method): boolean => /^Stream|Events$/.test(method);

/** Every list has its entries in the field with this number, and no other field. */
export const ENTRIES_FIELD = 1;

type Methods = typeof methods;
export type Method = keyof Methods;
export type UnaryMethod = Exclude<Method, `Stream${string}` | "GetContainerEvents">;
export type ImageList = "ListImages" | "StreamImages";
export type ContainerList = "ListContainers" | "StreamContainers";
export type SandboxList = "ListPodSandbox" | "StreamPodSandboxes";
export type ListMethod = ImageList | ContainerList | SandboxList;

type ValueOf<T, Long> = T extends Fields
  ? Message<T, Long>
  : T extends "string"
    ? string
    : T extends "bool"
      ? boolean
      : T extends "int64" | "uint64"
        ? Long
        : number;

type FieldValue<F extends Field, Long> = F["kind"] extends "map"
  ? Readonly<Record<string, string>>
  : F["kind"] extends "many"
    ? readonly ValueOf<F["type"], Long>[]
    : ValueOf<F["type"], Long> | (F["type"] extends Fields ? null : never);

/** As decoded: absent messages are `null`, other absent fields have their default. */
type Message<F extends Fields, Long = bigint> = {
  readonly [Name in keyof F]: FieldValue<F[Name], Long>;
};

/** Of a stream, one message. */
export type Answer<M extends Method> = Message<Methods[M]["answer"]>;
/** Integers of 64 bits are seconds here. */
export type Request<M extends Method> = Message<Methods[M]["request"], number>;

export type SandboxMessage = Message<typeof sandbox>;
export type ContainerMessage = Message<typeof container>;
export type ContainerStatusMessage = Message<typeof containerStatus>;
export type ImageMessage = Message<typeof image>;
export type FilesystemUsageMessage = Message<typeof filesystemUsage>;
