/**
 * Translates the runtime's responses into the model, and rejects those that leave something to guess. In the JSON of
 * verbose ones, whose shape every runtime invents for itself, looks for image names and layers.
 */

import {
  type ChainId,
  chainId,
  type ContainerId,
  containerId,
  imageId,
  podUid,
  type SandboxId,
  sandboxId,
} from "../model/ids.ts";
import type { ImageConfig } from "../model/ledger.ts";
import type {
  ContainerDetail,
  ReportedFilesystem,
  ReportedFilesystems,
  SandboxDetail,
} from "../model/ports.ts";
import type { WritableLayers } from "../model/reports.ts";
import type { Container, ContainerState, Image, Sandbox, SandboxState } from "../model/snapshot.ts";
import { fromRfc3339, instant } from "../model/time.ts";
import { isMap, parsedJson } from "../model/values.ts";
import { MalformedError } from "./codec.ts";
import type {
  AnswerTo,
  ContainerMessage,
  FilesystemUsage,
  ImageMessage,
  SandboxMessage,
} from "./messages.ts";

/** In hex. */
export const digestOf = (content: Buffer | string): string => Bun.SHA256.hash(content, "hex");

export function decodeImage(image: ImageMessage): Image {
  return {
    id: imageId(required(image.id, "an image has no ID")),
    repoTags: image.repo_tags,
    repoDigests: image.repo_digests,
    sizeBytes: image.size,
    pinned: image.pinned,
  };
}

export function decodeContainer(container: ContainerMessage): Container {
  const id = required(container.id, "a container has no ID");
  const sandbox = required(container.pod_sandbox_id, `container ${id} names no sandbox`);
  if (container.metadata === null) throw new MalformedError(`container ${id} has no metadata`);
  return {
    id: containerId(id),
    sandboxId: sandboxId(sandbox),
    name: container.metadata.name,
    attempt: container.metadata.attempt,
    podUid: podUid(container.labels["io.kubernetes.pod.uid"] ?? ""),
    podName: container.labels["io.kubernetes.pod.name"] ?? "",
    podNamespace: container.labels["io.kubernetes.pod.namespace"] ?? "",
    imageName: container.image?.image ?? "",
    imageRef: container.image_ref,
    imageId: container.image_id,
    state: stateIn(CONTAINER_STATES, container.state, `container ${id}`),
    createdAt: instant(container.created_at),
  };
}

export function decodeSandbox(sandbox: SandboxMessage): Sandbox {
  const id = required(sandbox.id, "a sandbox has no ID");
  if (sandbox.metadata === null) throw new MalformedError(`sandbox ${id} has no metadata`);
  return {
    id: sandboxId(id),
    podUid: podUid(sandbox.labels["io.kubernetes.pod.uid"] ?? ""),
    metadataUid: podUid(sandbox.metadata.uid),
    name: sandbox.metadata.name,
    namespace: sandbox.metadata.namespace,
    attempt: sandbox.metadata.attempt,
    state: stateIn(SANDBOX_STATES, sandbox.state, `sandbox ${id}`),
    createdAt: instant(sandbox.created_at),
  };
}

export function decodeSandboxDetail(
  id: SandboxId,
  { status }: AnswerTo<"PodSandboxStatus">,
): SandboxDetail {
  if (status === null) throw new MalformedError(`the status of sandbox ${id} is empty`);
  expectSame(id, status.id);
  const state = stateIn(SANDBOX_STATES, status.state, `sandbox ${id}`);
  return { id, state, address: status.network?.ip ?? "" };
}

export function decodeDetail(
  id: ContainerId,
  { status }: AnswerTo<"ContainerStatus">,
): ContainerDetail {
  if (status === null) throw new MalformedError(`the status of container ${id} is empty`);
  expectSame(id, status.id);
  return {
    id,
    imageVolumes: status.mounts
      .map(({ image }) => image?.image ?? "")
      .filter((name) => name !== ""),
    state: stateIn(CONTAINER_STATES, status.state, `container ${id}`),
    labels: status.labels,
    annotations: status.annotations,
  };
}

/** What another one logs to, mounts or does must not count for this one. */
function expectSame(about: string, id: string): void {
  if (id !== about) throw new MalformedError(`it is about "${id}" instead of ${about}`);
}

export const decodeFilesystems = (answer: AnswerTo<"ImageFsInfo">): ReportedFilesystems => ({
  images: answer.image_filesystems.map(filesystem),
  containers: answer.container_filesystems.map(filesystem),
});

const filesystem = (usage: FilesystemUsage): ReportedFilesystem => ({
  path: required(usage.fs_id?.mountpoint ?? "", "a filesystem has no mount point"),
  usedBytes: usage.used_bytes?.value ?? null,
  inodesUsed: usage.inodes_used?.value ?? null,
});

/** Omits containers without an ID or a figure. */
export function decodeWritableLayers({ stats }: AnswerTo<"ListContainerStats">): WritableLayers {
  const layers = new Map<ContainerId, bigint>();
  for (const { attributes, writable_layer: layer } of stats)
    if (attributes !== null && attributes.id !== "" && layer !== null && layer.used_bytes !== null)
      layers.set(containerId(attributes.id), layer.used_bytes.value);
  return layers;
}

/** Every runtime has a name, so what answers without one is not a runtime. */
export function decodeVersion(version: AnswerTo<"Version">): {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
} {
  return {
    name: required(version.runtime_name, "the runtime has no name"),
    version: version.runtime_version.replace(/^v(?=\d)/, ""),
    apiVersion: version.runtime_api_version,
  };
}

function required(text: string, fault: string): string {
  if (text === "") throw new MalformedError(fault);
  return text;
}

const CONTAINER_STATES: readonly ContainerState[] = ["created", "running", "exited", "unknown"];
const SANDBOX_STATES: readonly SandboxState[] = ["ready", "not-ready"];

/** Throws on a state that crigc does not know: mapped to `unknown`, a container would be stopped and removed. */
function stateIn<State>(states: readonly State[], state: number, what: string): State {
  const known = states[state];
  if (known === undefined) throw new MalformedError(`${what} is in state ${state}`);
  return known;
}

type Info = Readonly<Record<string, string>>;

const SANDBOX_IMAGE_KEY = /^(?:sandbox|pause|infra|podinfracontainer)image$/;

/**
 * Under any key that names it, in any spelling: containerd 1.x and CRI-O name the sandbox image in "config"; containerd 2
 * and cri-dockerd name none.
 */
export function sandboxImagesOf(info: Info): readonly string[] {
  const found = new Set<string>();
  const collect = (key: string, value: unknown): unknown => {
    const isNamed = SANDBOX_IMAGE_KEY.test(key.toLowerCase().replaceAll(/[_-]/g, ""));
    if (isNamed && typeof value === "string" && value !== "") found.add(value);
    return value;
  };
  for (const text of Object.values(info)) parsedJson(text, collect);
  return [...found];
}

/** More than any real image has (overlayfs mounts at most 500); a document that names more is not trusted. */
const LAYERS_MAX = 1024;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads `imageSpec` in `info["info"]`, as containerd and CRI-O write it. `null` if it names no layers: an OCI artifact,
 * a runtime without this document, or a diff ID that is not a SHA-256 digest.
 */
export function imageConfig(info: Info): ImageConfig {
  const document = parsedJson(info["info"] ?? "");
  const created = at(document, ["imageSpec", "created"]);
  return {
    chain: chainOf(at(document, ["imageSpec", "rootfs", "diff_ids"])),
    builtAt: typeof created === "string" ? fromRfc3339(created) : null,
  };
}

/**
 * The first layer's chain ID is its diff ID; each further one is the digest of the previous chain ID and its own diff
 * ID.
 */
function chainOf(diffIds: unknown): readonly ChainId[] | null {
  if (!Array.isArray(diffIds) || diffIds.length === 0 || diffIds.length > LAYERS_MAX) return null;
  const chain: ChainId[] = [];
  let last = "";
  for (const diff of diffIds as readonly unknown[]) {
    if (typeof diff !== "string" || !DIGEST.test(diff)) return null;
    last = last === "" ? diff : `sha256:${digestOf(`${last} ${diff}`)}`;
    chain.push(chainId(last));
  }
  return chain;
}

const at = (document: unknown, keys: readonly string[]): unknown =>
  keys.reduce((value, key) => (isMap(value) ? value[key] : undefined), document);
