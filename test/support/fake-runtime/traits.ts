// In what runtimes differ, as switches of the fake one.

export interface Traits {
  readonly name: string;
  /** As the runtime writes it, with a leading "v" on containerd. */
  readonly version: string;
  /** `StreamImages`, `StreamContainers`, `StreamPodSandboxes`; `UNIMPLEMENTED` otherwise. */
  readonly runtimeStreams: boolean;
  readonly imageStreams: boolean;
  /** Whether containers carry `image_id`. */
  readonly imageIds: boolean;
  /** What `Status(verbose)` says, by key. */
  readonly statusInfo: Readonly<Record<string, string>>;
  /**
   * Whether a removal on a full disk is answered, drops the image and frees nothing: its metadata cannot be written
   * (CRI-O).
   */
  readonly leavesLayersWhenFull: boolean;
  /** What a message may take. */
  readonly messageLimitBytes: number;
  /** Items in one message of a streaming list. */
  readonly batchSize: number;
}

/** As containerd 1.7 behaves. */
export const containerd17: Traits = {
  name: "containerd",
  version: "v1.7.24",
  runtimeStreams: false,
  imageStreams: false,
  imageIds: false,
  statusInfo: {
    config: JSON.stringify({ containerd: {}, sandboxImage: "registry.k8s.io/pause:3.8" }),
  },
  leavesLayersWhenFull: false,
  messageLimitBytes: 16 * 1024 * 1024,
  batchSize: 500,
};

/** Where CRI-O 1.37 differs. Its `ImageFsInfo` measures a directory of metadata: a test gives the node such a figure. */
export const crio137: Partial<Traits> = {
  name: "cri-o",
  version: "1.37.0",
  imageIds: true,
  statusInfo: { config: "" },
  leavesLayersWhenFull: true,
};
