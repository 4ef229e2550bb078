/** The part of CRI v1 that crigc uses: which fields it reads and sends. `proto/runtime-v1.proto` declares the same. */
import {
  flag,
  int32,
  int64,
  list,
  type Message,
  message,
  type RequestTable,
  strings,
  text,
  uint32,
  uint64,
  type ValueOf,
  written,
} from "./fields.ts";

const info = strings();
/** The only labels in lists that a rule reads. */
const podLabels = strings([
  "io.kubernetes.pod.uid",
  "io.kubernetes.pod.name",
  "io.kubernetes.pod.namespace",
]);

const sandbox = message({
  id: [1, text],
  metadata: [
    2,
    message({ name: [1, text], uid: [2, text], namespace: [3, text], attempt: [4, uint32] }),
  ],
  state: [3, int32],
  created_at: [4, int64],
  labels: [5, podLabels],
});

const imageSpec = message({ image: [1, text] });

const container = message({
  id: [1, text],
  pod_sandbox_id: [2, text],
  metadata: [3, message({ name: [1, text], attempt: [2, uint32] })],
  image: [4, imageSpec],
  image_ref: [5, text],
  state: [6, int32],
  created_at: [7, int64],
  labels: [8, podLabels],
  image_id: [10, text],
});

const containerStatus = message({
  id: [1, text],
  state: [3, int32],
  finished_at: [6, int64],
  image: [8, imageSpec],
  image_ref: [9, text],
  labels: [12, strings()],
  annotations: [13, strings()],
  mounts: [14, list(message({ image: [9, imageSpec] }))],
  log_path: [15, text],
  image_id: [17, text],
});

const image = message({
  id: [1, text],
  repo_tags: [2, list(text)],
  repo_digests: [3, list(text)],
  size: [4, uint64],
  pinned: [8, flag],
});

const amount = message({ value: [1, uint64] });
const filesystemUsage = message({
  fs_id: [2, message({ mountpoint: [1, text] })],
  used_bytes: [3, amount],
  inodes_used: [4, amount],
});

const containerStats = message({
  attributes: [1, message({ id: [1, text] })],
  writable_layer: [4, filesystemUsage],
});

export type SandboxMessage = ValueOf<typeof sandbox>;
export type ContainerMessage = ValueOf<typeof container>;
export type ContainerStatusMessage = ValueOf<typeof containerStatus>;
export type ImageMessage = ValueOf<typeof image>;
export type FilesystemUsageMessage = ValueOf<typeof filesystemUsage>;
export type ContainerStatsMessage = ValueOf<typeof containerStats>;
export type VersionMessage = Answers["Version"];
export type ContainerEventMessage = Answers["GetContainerEvents"];

const nothing = message({});

/** By method; for streams, one message. */
const answers = {
  Version: message({
    runtime_name: [2, text],
    runtime_version: [3, text],
    runtime_api_version: [4, text],
  }),
  Status: message({ info: [2, info] }),
  ListPodSandbox: message({ items: [1, list(sandbox)] }),
  StreamPodSandboxes: message({ pod_sandboxes: [1, list(sandbox)] }),
  PodSandboxStatus: message({
    status: [
      1,
      message({ id: [1, text], state: [3, int32], network: [5, message({ ip: [1, text] })] }),
    ],
    info: [2, info],
  }),
  StopPodSandbox: nothing,
  RemovePodSandbox: nothing,
  ListContainers: message({ containers: [1, list(container)] }),
  StreamContainers: message({ containers: [1, list(container)] }),
  ContainerStatus: message({ status: [1, containerStatus] }),
  ListContainerStats: message({ stats: [1, list(containerStats)] }),
  StopContainer: nothing,
  RemoveContainer: nothing,
  ExecSync: message({ exit_code: [3, int32] }),
  GetContainerEvents: message({
    container_id: [1, text],
    container_event_type: [2, int32],
    containers_statuses: [5, list(containerStatus)],
  }),
  ListImages: message({ images: [1, list(image)] }),
  StreamImages: message({ images: [1, list(image)] }),
  ImageStatus: message({ image: [1, image], info: [2, info] }),
  RemoveImage: nothing,
  ImageFsInfo: message({
    image_filesystems: [1, list(filesystemUsage)],
    container_filesystems: [2, list(filesystemUsage)],
  }),
} as const;

/** Every list has its entries in the field with this number, and no other field. */
export const ENTRIES_FIELD = 1;

export type Answers = { readonly [M in keyof typeof answers]: ValueOf<(typeof answers)[M]> };

/** Throws `MalformedError`. */
export function decodeAnswer<M extends keyof Answers>(method: M, bytes: Buffer): Answers[M] {
  const answer: Message<Record<never, never>> = answers[method].whole(bytes);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of the same method
  return answer as Answers[M];
}

export type ContainerFilterMessage = {
  readonly state?: { readonly state: number };
  readonly pod_sandbox_id?: string;
};

type Empty = Readonly<Record<never, never>>;
type ForContainer = { readonly container_id: string };
type ForSandbox = { readonly pod_sandbox_id: string };
type ForImage = { readonly image: { readonly image: string } };

/** For methods with a single response; requests of streams have no fields. */
interface Requests {
  readonly Version: Empty;
  readonly Status: { readonly verbose: boolean };
  readonly ListPodSandbox: { readonly filter?: { readonly state: { readonly state: number } } };
  readonly PodSandboxStatus: ForSandbox & { readonly verbose: boolean };
  readonly StopPodSandbox: ForSandbox;
  readonly RemovePodSandbox: ForSandbox;
  readonly ListContainers: { readonly filter?: ContainerFilterMessage };
  readonly ContainerStatus: ForContainer;
  readonly ListContainerStats: Empty;
  /** Seconds. */
  readonly StopContainer: ForContainer & { readonly timeout: number };
  readonly RemoveContainer: ForContainer;
  readonly ExecSync: ForContainer & { readonly cmd: readonly string[]; readonly timeout: number };
  readonly ListImages: Empty;
  readonly ImageStatus: ForImage & { readonly verbose?: boolean };
  readonly RemoveImage: ForImage;
  readonly ImageFsInfo: Empty;
}

const forContainer = { container_id: 1 };
const forSandbox = { pod_sandbox_id: 1 };
const forImage = { image: [1, { image: 1 }] } as const;
const state = [2, { state: 1 }] as const;

const requests: Readonly<Partial<Record<keyof Answers, RequestTable>>> = {
  Status: { verbose: 1 },
  ListPodSandbox: { filter: [1, { state }] },
  PodSandboxStatus: { ...forSandbox, verbose: 2 },
  StopPodSandbox: forSandbox,
  RemovePodSandbox: forSandbox,
  ListContainers: { filter: [1, { state, pod_sandbox_id: 3 }] },
  ContainerStatus: forContainer,
  StopContainer: { ...forContainer, timeout: 2 },
  RemoveContainer: forContainer,
  ExecSync: { ...forContainer, cmd: 2, timeout: 3 },
  ImageStatus: { ...forImage, verbose: 2 },
  RemoveImage: forImage,
};

export const encodeRequest = (method: keyof Answers, request: object): Buffer =>
  written(requests[method] ?? {}, request);

const ofImages: ReadonlySet<keyof Answers> = new Set<keyof Answers>([
  "ListImages",
  "StreamImages",
  "ImageStatus",
  "RemoveImage",
  "ImageFsInfo",
]);

const streams: ReadonlySet<keyof Answers> = new Set<StreamMethod>([
  "StreamPodSandboxes",
  "StreamContainers",
  "StreamImages",
  "GetContainerEvents",
]);

/** The response is any number of messages. */
export const isStream = (method: keyof Answers): boolean => streams.has(method);

/** The HTTP/2 path of a call: `/runtime.v1.ImageService/ListImages`. */
export const pathOf = (method: keyof Answers): string =>
  `/runtime.v1.${ofImages.has(method) ? "ImageService" : "RuntimeService"}/${method}`;

export type UnaryMethod = keyof Requests;
export type StreamMethod = Exclude<keyof Answers, UnaryMethod>;

export type UnaryMethods = {
  readonly [M in UnaryMethod]: { readonly request: Requests[M]; readonly response: Answers[M] };
};
export type StreamMethods = Pick<Answers, StreamMethod>;

/** Methods whose responses are lists of entries and nothing else. */
export type ImageList = "ListImages" | "StreamImages";
export type ContainerList = "ListContainers" | "StreamContainers";
export type SandboxList = "ListPodSandbox" | "StreamPodSandboxes";
export type ListMethod = ImageList | ContainerList | SandboxList;
