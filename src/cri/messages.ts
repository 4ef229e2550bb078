/** The types of the messages that `proto/runtime-v1.proto` declares, as the library hands them out and takes them. */

/** Enums are plain numbers on purpose: one that we do not know has to be noticed. */
type EnumNumber = number;

/** An integer of 64 bits, as decimal text: a number would round what is beyond 2^53. */
type Long = string;

type Strings = Readonly<Record<string, string>>;

export type VersionMessage = {
  readonly runtime_name: string;
  readonly runtime_version: string;
  readonly runtime_api_version: string;
};

export type SandboxMessage = {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly attempt: number;
  } | null;
  readonly state: EnumNumber;
  readonly created_at: Long;
  readonly labels: Strings;
};

export type ImageSpecMessage = { readonly image: string };

export type ContainerMessage = {
  readonly id: string;
  readonly pod_sandbox_id: string;
  readonly metadata: { readonly name: string; readonly attempt: number } | null;
  readonly image: ImageSpecMessage | null;
  readonly image_ref: string;
  readonly state: EnumNumber;
  readonly created_at: Long;
  readonly labels: Strings;
  readonly image_id: string;
};

export type ContainerStatusMessage = {
  readonly id: string;
  readonly state: EnumNumber;
  readonly finished_at: Long;
  readonly image: ImageSpecMessage | null;
  readonly image_ref: string;
  readonly labels: Strings;
  readonly annotations: Strings;
  readonly mounts: readonly { readonly image: ImageSpecMessage | null }[];
  readonly log_path: string;
  readonly image_id: string;
};

export type ImageMessage = {
  readonly id: string;
  readonly repo_tags: readonly string[];
  readonly repo_digests: readonly string[];
  readonly size: Long;
  readonly pinned: boolean;
};

export type FilesystemUsageMessage = {
  readonly fs_id: { readonly mountpoint: string } | null;
  readonly used_bytes: { readonly value: Long } | null;
  readonly inodes_used: { readonly value: Long } | null;
};

export type ContainerStatsMessage = {
  readonly attributes: { readonly id: string } | null;
  readonly writable_layer: FilesystemUsageMessage | null;
};

export type ContainerEventMessage = {
  readonly container_id: string;
  readonly container_event_type: EnumNumber;
  readonly containers_statuses: readonly ContainerStatusMessage[];
};

export type ContainerFilterMessage = {
  readonly state?: { readonly state: EnumNumber };
  readonly pod_sandbox_id?: string;
};

export type SandboxFilterMessage = { readonly state?: { readonly state: EnumNumber } };

type Empty = Readonly<Record<never, never>>;
type Info = { readonly info: Strings };
type ForContainer = { readonly container_id: string };
type ForSandbox = { readonly pod_sandbox_id: string };

/** Each method that answers once: its request, of which any field may be left out, and its answer. */
export type UnaryMethods = {
  readonly Version: {
    readonly request: Empty;
    readonly response: VersionMessage;
  };
  readonly Status: { readonly request: { readonly verbose: boolean }; readonly response: Info };
  readonly ListPodSandbox: {
    readonly request: { readonly filter?: SandboxFilterMessage };
    readonly response: { readonly items: readonly SandboxMessage[] };
  };
  readonly PodSandboxStatus: {
    readonly request: ForSandbox & { readonly verbose: boolean };
    readonly response: Info & {
      readonly status: {
        readonly state: EnumNumber;
        readonly network: { readonly ip: string } | null;
      } | null;
    };
  };
  readonly StopPodSandbox: { readonly request: ForSandbox; readonly response: Empty };
  readonly RemovePodSandbox: { readonly request: ForSandbox; readonly response: Empty };
  readonly ListContainers: {
    readonly request: { readonly filter?: ContainerFilterMessage };
    readonly response: { readonly containers: readonly ContainerMessage[] };
  };
  readonly ContainerStatus: {
    readonly request: ForContainer;
    readonly response: { readonly status: ContainerStatusMessage | null };
  };
  readonly ListContainerStats: {
    readonly request: Empty;
    readonly response: { readonly stats: readonly ContainerStatsMessage[] };
  };
  readonly StopContainer: {
    readonly request: ForContainer & { readonly timeout: number };
    readonly response: Empty;
  };
  readonly RemoveContainer: { readonly request: ForContainer; readonly response: Empty };
  readonly ExecSync: {
    readonly request: ForContainer & { readonly cmd: readonly string[]; readonly timeout: number };
    readonly response: { readonly exit_code: number };
  };
  readonly ListImages: {
    readonly request: Empty;
    readonly response: { readonly images: readonly ImageMessage[] };
  };
  readonly ImageStatus: {
    readonly request: { readonly image: ImageSpecMessage; readonly verbose?: boolean };
    readonly response: Info & { readonly image: ImageMessage | null };
  };
  readonly RemoveImage: {
    readonly request: { readonly image: ImageSpecMessage };
    readonly response: Empty;
  };
  readonly ImageFsInfo: {
    readonly request: Empty;
    readonly response: {
      readonly image_filesystems: readonly FilesystemUsageMessage[];
      readonly container_filesystems: readonly FilesystemUsageMessage[];
    };
  };
};

/** Each method that answers with a stream, and one message of it. None of their requests carries a field. */
export type StreamMethods = {
  readonly StreamPodSandboxes: { readonly pod_sandboxes: readonly SandboxMessage[] };
  readonly StreamContainers: { readonly containers: readonly ContainerMessage[] };
  readonly StreamImages: { readonly images: readonly ImageMessage[] };
  readonly GetContainerEvents: ContainerEventMessage;
};

export type UnaryMethod = keyof UnaryMethods;
export type StreamMethod = keyof StreamMethods;

/** Methods whose answers are lists: entries, and nothing else. */
export type ImageList = "ListImages" | "StreamImages";
export type ContainerList = "ListContainers" | "StreamContainers";
export type SandboxList = "ListPodSandbox" | "StreamPodSandboxes";
export type ListMethod = ImageList | ContainerList | SandboxList;

/** One message of an answer, by method. */
export type Answers = StreamMethods & {
  readonly [M in UnaryMethod]: UnaryMethods[M]["response"];
};
