// What the fake runtime does for each call: reads or changes its node, and answers.
import type { status } from "@grpc/grpc-js";

import {
  containerMessage,
  containerStates,
  containerStatusMessage,
  filesystemsAnswer,
  imageInfo,
  imageMessage,
  sandboxMessage,
  sandboxStates,
  sandboxStatusAnswer,
  type Speaker,
} from "./answers.ts";
import type { ContainerDescription, ImageDescription } from "./describe.ts";

/** A call that the runtime refuses, by the name of its gRPC code. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: keyof typeof status;
  constructor(code: keyof typeof status, message: string) {
    super(message);
    this.code = code;
  }
}

export interface FakeSpeaker extends Speaker {
  /** What a pre-stop command ends with. */
  readonly exec: (containerId: string, command: readonly string[]) => number | Promise<number>;
}

// Requests are what the loader made of the proto: plain objects with every field set.
// oxlint-disable-next-line typescript/no-explicit-any
type Request = any;
type Unary = (speaker: FakeSpeaker, request: Request) => object | Promise<object>;

export const unaryMethods: Readonly<Record<string, Unary>> = {
  Version: ({ traits }) => ({
    version: "0.1.0",
    runtime_name: traits.name,
    runtime_version: traits.version,
    runtime_api_version: "v1",
  }),
  Status: ({ traits }, { verbose }) => ({
    status: { conditions: [{ type: "RuntimeReady", status: true }] },
    info: verbose ? traits.statusInfo : {},
  }),
  ListPodSandbox: (speaker, { filter }) => ({ items: listSandboxes(speaker, filter) }),
  PodSandboxStatus: ({ node }, request) => {
    const sandbox = node.sandboxes.get(request.pod_sandbox_id);
    if (sandbox === undefined) throw goneRefusal("sandbox", request.pod_sandbox_id);
    return sandboxStatusAnswer(sandbox);
  },
  StopPodSandbox: ({ node }, request) => {
    node.stopSandbox(request.pod_sandbox_id);
    return {};
  },
  RemovePodSandbox: ({ node }, request) => {
    node.removeSandbox(request.pod_sandbox_id);
    return {};
  },
  ListContainers: (speaker, { filter }) => ({ containers: listContainers(speaker, filter) }),
  ContainerStatus: (speaker, request) => ({
    status: containerStatusMessage(speaker, knownContainer(speaker, request.container_id)),
  }),
  StopContainer: ({ node }, request) => {
    if (node.containers.has(request.container_id))
      node.setContainerState(request.container_id, "exited");
    return {};
  },
  RemoveContainer: ({ node }, request) => {
    node.removeContainer(request.container_id);
    return {};
  },
  ListContainerStats: () => ({ stats: [] }),
  ExecSync: async (speaker, { container_id: id, cmd }) => {
    const container = knownContainer(speaker, id);
    if ((container.state ?? "running") !== "running")
      throw new Refusal("FAILED_PRECONDITION", `container "${id}" is not running`);
    return { stdout: "", stderr: "", exit_code: await speaker.exec(id, cmd) };
  },
  ListImages: ({ node }) => ({ images: node.images.map(imageMessage) }),
  ImageStatus: (speaker, request) => {
    const reference: string = request.image?.image ?? "";
    const image = speaker.node.findImage(reference) ?? imageByPrefix(speaker, reference);
    if (image === undefined) return {};
    return request.verbose === true
      ? { image: imageMessage(image), info: imageInfo(image) }
      : { image: imageMessage(image) };
  },
  RemoveImage: (speaker, request) => removeImage(speaker, request.image?.image ?? ""),
  ImageFsInfo: ({ node }) => filesystemsAnswer(node),
};

/** As containerd does it. */
function imageByPrefix({ node }: FakeSpeaker, prefix: string): ImageDescription | undefined {
  if (!/^[0-9a-f]+$/.test(prefix)) return undefined;
  const found = node.images.filter(({ id }) => id.replace("sha256:", "").startsWith(prefix));
  if (found.length > 1) throw new Refusal("UNKNOWN", "ambiguous digest");
  return found[0];
}

type ListStream = (speaker: FakeSpeaker) => {
  readonly has: boolean;
  readonly field: string;
  readonly items: readonly object[];
};

export const listStreams: Readonly<Record<string, ListStream>> = {
  StreamContainers: (speaker) => ({
    has: speaker.traits.runtimeStreams,
    field: "containers",
    items: listContainers(speaker, null),
  }),
  StreamPodSandboxes: (speaker) => ({
    has: speaker.traits.runtimeStreams,
    field: "pod_sandboxes",
    items: listSandboxes(speaker, null),
  }),
  StreamImages: ({ node, traits }) => ({
    has: traits.imageStreams,
    field: "images",
    items: node.images.map(imageMessage),
  }),
};

function listSandboxes({ node }: FakeSpeaker, filter: Request): readonly object[] {
  return [...node.sandboxes.values()]
    .filter((it) => {
      const isOfId = !filter?.id || filter.id === it.id;
      const wanted = filter?.state ? sandboxStates[filter.state.state] : undefined;
      return isOfId && (wanted === undefined || wanted === (it.state ?? "ready"));
    })
    .map(sandboxMessage);
}

function listContainers(speaker: FakeSpeaker, filter: Request): readonly object[] {
  return [...speaker.node.containers.values()]
    .filter((it) => {
      const isOfId = !filter?.id || filter.id === it.id;
      const isOfSandbox = !filter?.pod_sandbox_id || filter.pod_sandbox_id === it.sandboxId;
      const wanted = filter?.state ? containerStates[filter.state.state] : undefined;
      const isOfState = wanted === undefined || wanted === (it.state ?? "running");
      return isOfId && isOfSandbox && isOfState;
    })
    .map((it) => containerMessage(speaker, it));
}

function knownContainer({ node }: FakeSpeaker, id: string): ContainerDescription {
  const found = node.containers.get(id);
  if (found === undefined) throw goneRefusal("container", id);
  return found;
}

const goneRefusal = (what: string, id: string): Refusal =>
  new Refusal("NOT_FOUND", `${what} "${id}": not found`);

function removeImage({ node, traits }: FakeSpeaker, reference: string): object {
  node.keepsContent ||= traits.leavesLayersWhenFull && node.store.isFull;
  node.removeImage(reference);
  return {};
}
