// The fake runtime's answers: what its node holds, in the words of CRI.
import {
  type ContainerDescription,
  type FilesystemDescription,
  hexId,
  type ImageDescription,
  kubernetesLabels,
  nanoseconds,
  type SandboxDescription,
} from "./describe.ts";
import { type FakeNode, layersOf, reportedBytes } from "./node.ts";
import type { Traits } from "./traits.ts";

const defaultTime = "2026-01-01T00:00:00Z";
export const containerStates = ["created", "running", "exited", "unknown"] as const;
export const sandboxStates = ["ready", "not-ready"] as const;

export function imageMessage(image: ImageDescription): object {
  return {
    id: image.id,
    repo_tags: image.repoTags ?? [],
    repo_digests: image.repoDigests ?? [],
    size: reportedBytes(image).toString(),
    username: "root",
    spec: { image: image.id },
    pinned: image.pinned ?? false,
  };
}

/** What a verbose status says of an image: its layers by their diff IDs, first to last. */
export function imageInfo(image: ImageDescription): Readonly<Record<string, string>> {
  if (image.isArtifact === true) return {};
  const diffIds = layersOf(image).map(({ id }) => `sha256:${hexId(id)}`);
  const imageSpec = {
    ...(image.builtAt === undefined ? {} : { created: image.builtAt }),
    rootfs: { type: "layers", diff_ids: diffIds },
  };
  return { info: JSON.stringify({ imageSpec }) };
}

export function sandboxMessage(sandbox: SandboxDescription): object {
  const metadata = sandboxMetadata(sandbox);
  return {
    id: sandbox.id,
    metadata,
    state: sandboxStates.indexOf(sandbox.state ?? "ready"),
    created_at: nanoseconds(sandbox.createdAt ?? defaultTime).toString(),
    labels: sandbox.labels ?? kubernetesLabels(metadata),
    annotations: { "kubernetes.io/config.source": "api" },
  };
}

function sandboxMetadata(sandbox: SandboxDescription): {
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly attempt: number;
} {
  const { id, uid = `uid-${id}`, name = `pod-${id.slice(0, 8)}`, namespace = "default" } = sandbox;
  return { name, uid, namespace, attempt: sandbox.attempt ?? 0 };
}

export const sandboxStatusAnswer = (sandbox: SandboxDescription): object => ({
  status: { ...sandboxMessage(sandbox), network: { ip: sandbox.ip ?? "10.0.0.7" } },
});

/** A node in the words of one runtime. */
export interface Speaker {
  readonly node: FakeNode;
  readonly traits: Traits;
}

export function containerMessage(speaker: Speaker, container: ContainerDescription): object {
  return {
    id: container.id,
    pod_sandbox_id: container.sandboxId,
    metadata: { name: nameOf(container), attempt: container.attempt ?? 0 },
    image: { image: container.image },
    ...imageFields(speaker, container),
    state: containerStates.indexOf(container.state ?? "running"),
    created_at: nanoseconds(container.createdAt ?? defaultTime).toString(),
    labels: labelsOf(speaker.node, container),
    annotations: container.annotations ?? {},
  };
}

export function containerStatusMessage(speaker: Speaker, container: ContainerDescription): object {
  const volumes = (container.imageVolumes ?? []).map((image, index) => ({
    container_path: `/volumes/${index}`,
    readonly: true,
    image: { image },
  }));
  return {
    ...containerMessage(speaker, container),
    started_at: nanoseconds(container.createdAt ?? defaultTime).toString(),
    finished_at: container.state === "exited" ? nanoseconds(defaultTime).toString() : "0",
    mounts: [{ container_path: "/etc/hosts", host_path: "/var/lib/hosts" }, ...volumes],
  };
}

const nameOf = (container: ContainerDescription): string => container.name ?? "main";

function labelsOf(
  node: FakeNode,
  container: ContainerDescription,
): Readonly<Record<string, string>> {
  if (container.labels !== undefined) return container.labels;
  const sandbox = node.sandboxes.get(container.sandboxId) ?? { id: container.sandboxId };
  const own = { "io.kubernetes.container.name": nameOf(container) };
  return sandbox.labels ?? { ...kubernetesLabels(sandboxMetadata(sandbox)), ...own };
}

function imageFields(speaker: Speaker, container: ContainerDescription): object {
  const id = speaker.node.findImage(container.image)?.id ?? container.image;
  return {
    image_ref: container.imageRef ?? id,
    image_id: container.imageId ?? (speaker.traits.imageIds ? id : ""),
  };
}

export function filesystemsAnswer(node: FakeNode): object {
  const own = { mountpoint: node.store.directory ?? "/var/lib/fake-runtime" };
  const { imageFilesystems = [own], containerFilesystems = [] } = node.description;
  const usage = ({ mountpoint, usedBytes, inodesUsed }: FilesystemDescription): object => ({
    timestamp: "1767225600000000000",
    fs_id: { mountpoint },
    used_bytes: usedBytes === null ? null : { value: usedBytes ?? node.store.usedBytes },
    inodes_used: inodesUsed === null ? null : { value: inodesUsed ?? node.store.layerCount },
  });
  return {
    image_filesystems: imageFilesystems.map(usage),
    container_filesystems: containerFilesystems.map(usage),
  };
}
