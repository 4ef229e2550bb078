/** The part of CRI v1 that crigc uses, as types of what `codec.ts` encodes and decodes. `proto/runtime-v1.proto` declares it. */

type Strings = Readonly<Record<string, string>>;
type ImageSpec = { readonly image: string };

export interface SandboxMessage {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly attempt: number;
  } | null;
  readonly state: number;
  readonly created_at: bigint;
  readonly labels: Strings;
}

export interface ContainerMessage {
  readonly id: string;
  readonly pod_sandbox_id: string;
  readonly metadata: { readonly name: string; readonly attempt: number } | null;
  readonly image: ImageSpec | null;
  readonly image_ref: string;
  readonly state: number;
  readonly created_at: bigint;
  readonly labels: Strings;
  readonly image_id: string;
}

export interface ContainerStatusMessage {
  readonly id: string;
  readonly state: number;
  readonly image: ImageSpec | null;
  readonly image_ref: string;
  readonly labels: Strings;
  readonly annotations: Strings;
  readonly mounts: readonly { readonly image: ImageSpec | null }[];
  readonly image_id: string;
}

export interface ImageMessage {
  readonly id: string;
  readonly repo_tags: readonly string[];
  readonly repo_digests: readonly string[];
  readonly size: bigint;
  readonly pinned: boolean;
}

type Amount = { readonly value: bigint };

export interface FilesystemUsageMessage {
  readonly fs_id: { readonly mountpoint: string } | null;
  readonly used_bytes: Amount | null;
  readonly inodes_used: Amount | null;
}

export interface ContainerStatsMessage {
  readonly attributes: { readonly id: string } | null;
  readonly writable_layer: FilesystemUsageMessage | null;
}

export interface VersionMessage {
  readonly runtime_name: string;
  readonly runtime_version: string;
  readonly runtime_api_version: string;
}

type Empty = Readonly<Record<never, never>>;

/** By method. */
interface Answers {
  readonly Version: VersionMessage;
  readonly Status: { readonly info: Strings };
  readonly ListPodSandbox: { readonly items: readonly SandboxMessage[] };
  readonly StreamPodSandboxes: { readonly pod_sandboxes: readonly SandboxMessage[] };
  readonly PodSandboxStatus: {
    readonly status: {
      readonly id: string;
      readonly state: number;
      readonly network: { readonly ip: string } | null;
    } | null;
  };
  readonly StopPodSandbox: Empty;
  readonly RemovePodSandbox: Empty;
  readonly ListContainers: { readonly containers: readonly ContainerMessage[] };
  readonly StreamContainers: { readonly containers: readonly ContainerMessage[] };
  readonly ContainerStatus: { readonly status: ContainerStatusMessage | null };
  readonly ListContainerStats: { readonly stats: readonly ContainerStatsMessage[] };
  readonly StopContainer: Empty;
  readonly RemoveContainer: Empty;
  readonly ExecSync: { readonly exit_code: number };
  readonly ListImages: { readonly images: readonly ImageMessage[] };
  readonly StreamImages: { readonly images: readonly ImageMessage[] };
  readonly ImageStatus: { readonly image: ImageMessage | null; readonly info: Strings };
  readonly RemoveImage: Empty;
  readonly ImageFsInfo: {
    readonly image_filesystems: readonly FilesystemUsageMessage[];
    readonly container_filesystems: readonly FilesystemUsageMessage[];
  };
}

type State = { readonly state: number };
export type ContainerFilterMessage = {
  readonly state: State | null;
  /** "": of any sandbox. */
  readonly pod_sandbox_id: string;
};

type ForContainer = { readonly container_id: string };
type ForSandbox = { readonly pod_sandbox_id: string };
type ForImage = { readonly image: { readonly image: string } };

/** Of methods with a single response; those of streams have no fields. */
interface Requests {
  readonly Version: Empty;
  readonly Status: { readonly verbose: boolean };
  readonly ListPodSandbox: { readonly filter: { readonly state: State | null } | null };
  readonly PodSandboxStatus: ForSandbox;
  readonly StopPodSandbox: ForSandbox;
  readonly RemovePodSandbox: ForSandbox;
  readonly ListContainers: { readonly filter: ContainerFilterMessage | null };
  readonly ContainerStatus: ForContainer;
  readonly ListContainerStats: Empty;
  /** Seconds. */
  readonly StopContainer: ForContainer & { readonly timeout: number };
  readonly RemoveContainer: ForContainer;
  readonly ExecSync: ForContainer & { readonly cmd: readonly string[]; readonly timeout: number };
  readonly ListImages: Empty;
  readonly ImageStatus: ForImage & { readonly verbose: boolean };
  readonly RemoveImage: ForImage;
  readonly ImageFsInfo: Empty;
}

export type Method = keyof Answers;
export type UnaryMethod = keyof Requests;
/** Of a stream, one message. */
export type Answer<M extends Method> = Answers[M];
export type Request<M extends Method> = M extends UnaryMethod ? Requests[M] : Empty;

/** Methods whose responses are lists of entries and nothing else. */
export type ImageList = "ListImages" | "StreamImages";
export type ContainerList = "ListContainers" | "StreamContainers";
export type SandboxList = "ListPodSandbox" | "StreamPodSandboxes";
export type ListMethod = ImageList | ContainerList | SandboxList;
