// Puts pods on a test node as the kubelet does: labels, annotations, log directories, restarts.
import { randomUUID } from "node:crypto";
import { mkdirSync, symlinkSync } from "node:fs";

import type { Answer } from "./cri.ts";
import type { ContainerdNode } from "./node.ts";
import { cgroupParentOf } from "./teardown.ts";
import { until } from "./until.ts";

export interface PodOptions {
  readonly name: string;
  /** Default "default". */
  readonly namespace?: string;
  /** Default: a new one. A pod whose sandbox is made again keeps it. */
  readonly uid?: string;
  /** The sandbox's attempt. Default 0. */
  readonly attempt?: number;
  /** False: without the labels by which Kubernetes knows its own, as other users of CRI make them. Default true. */
  readonly fromKubernetes?: boolean;
}

export interface Pod {
  readonly sandboxId: string;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly logDirectory: string;
  readonly config: SandboxConfig;
}

export interface ContainerMount {
  readonly container_path: string;
  readonly host_path?: string;
  readonly readonly?: boolean;
  readonly propagation?: "PROPAGATION_PRIVATE" | "PROPAGATION_HOST_TO_CONTAINER";
  /** An image volume: containerd 2.1 has them, and wants them read-only. 1.x refuses the container. */
  readonly image?: { readonly image: string };
}

export interface ContainerOptions {
  readonly name: string;
  /** Any name or ID of an image on the node. */
  readonly image: string;
  /** Default: what the image runs, which waits until it is asked to end. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly key: string; readonly value: string }[];
  /** As CRI's LinuxContainerSecurityContext. Default: the runtime's own. */
  readonly security?: object;
  /** How many instances of it there were before. Default 0. */
  readonly attempt?: number;
  /** Create it from the name as given. Default: from the image's ID, as the kubelet does. */
  readonly byName?: boolean;
  readonly mounts?: readonly ContainerMount[];
}

export interface PodContainer {
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  /** Where its log goes. */
  readonly logFile: string;
  /** The link in the legacy directory that the kubelet makes beside it. */
  readonly legacyLink: string;
}

/** Runs a sandbox on the host's network, which needs no CNI. */
export async function runPod(node: ContainerdNode, options: PodOptions): Promise<Pod> {
  const config = sandboxConfig(node, options);
  mkdirSync(config.log_directory, { recursive: true });
  const { pod_sandbox_id } = await node.cri.call("RunPodSandbox", { config });
  const { name, namespace, uid } = config.metadata;
  const logDirectory = config.log_directory;
  return { sandboxId: pod_sandbox_id, name, namespace, uid, logDirectory, config };
}

/** Makes a container and leaves it as created. */
export async function createContainer(
  node: ContainerdNode,
  pod: Pod,
  options: ContainerOptions,
): Promise<PodContainer> {
  const { name, attempt = 0 } = options;
  const config = await containerConfig(node, pod, options);
  mkdirSync(`${pod.logDirectory}/${name}`, { recursive: true });
  const { container_id: id } = await node.cri.call("CreateContainer", {
    pod_sandbox_id: pod.sandboxId,
    config,
    sandbox_config: pod.config,
  });
  const logFile = `${pod.logDirectory}/${config.log_path}`;
  // Named for the pod, the container and its ID, as the kubelet names it.
  const link = `${pod.name}_${pod.namespace}_${name}-${id}.log`;
  const legacyLink = `${node.containerLogsDirectory}/${link}`;
  symlinkSync(logFile, legacyLink);
  return { id, name, attempt, logFile, legacyLink };
}

/** Makes a container and starts it. */
export async function startContainer(
  node: ContainerdNode,
  pod: Pod,
  options: ContainerOptions,
): Promise<PodContainer> {
  const container = await createContainer(node, pod, options);
  await node.cri.call("StartContainer", { container_id: container.id });
  return container;
}

/** Runs a container to its end and leaves it dead, with the exit code that `command` gives (default 0). */
export async function runToEnd(
  node: ContainerdNode,
  pod: Pod,
  options: ContainerOptions,
): Promise<PodContainer> {
  const container = await startContainer(node, pod, {
    command: ["/bin/sh", "-c", `echo ${options.name} is done`],
    ...options,
  });
  await until(`container ${options.name} has ended`, 20_000, async () => {
    return (await containerStatus(node, container.id)).state === "CONTAINER_EXITED";
  });
  return container;
}

/** Ends everything in the pod; its sandbox stays as not ready. */
export async function stopPod(node: ContainerdNode, pod: Pod): Promise<void> {
  await node.cri.call("StopPodSandbox", { pod_sandbox_id: pod.sandboxId });
}

/** Ends and removes the pod with its containers; its logs stay. */
export async function removePod(node: ContainerdNode, pod: Pod): Promise<void> {
  await stopPod(node, pod);
  await node.cri.call("RemovePodSandbox", { pod_sandbox_id: pod.sandboxId });
}

/** The pod's directory below the kubelet's root, by which `kubelet-dir` knows that it lives. */
export function makeKubeletPodDirectory(node: ContainerdNode, pod: Pick<Pod, "uid">): string {
  const directory = `${node.rootDirectory}/pods/${pod.uid}`;
  mkdirSync(directory, { recursive: true });
  return directory;
}

export async function containerStatus(node: ContainerdNode, id: string): Promise<Answer> {
  return (await node.cri.call("ContainerStatus", { container_id: id })).status;
}

/** Runs a command inside; what it printed, or an error if it failed. Proves that a container runs in truth. */
export async function execInContainer(
  node: ContainerdNode,
  containerId: string,
  command: readonly string[],
): Promise<string> {
  const answer = await node.cri.call("ExecSync", {
    container_id: containerId,
    cmd: command,
    timeout: 10,
  });
  if (answer.exit_code !== 0) {
    throw new Error(
      `${command.join(" ")} in ${containerId} ended with ${answer.exit_code}: ${answer.stderr.toString()}`,
    );
  }
  return answer.stdout.toString();
}

type SandboxConfig = ReturnType<typeof sandboxConfig>;

function sandboxConfig(node: ContainerdNode, options: PodOptions) {
  const { name, namespace = "default", uid = randomUUID(), attempt = 0 } = options;
  const kubernetes = options.fromKubernetes !== false;
  return {
    metadata: { name, uid, namespace, attempt },
    // runc refuses to set a host name on the host's own network.
    hostname: "",
    log_directory: `${node.podLogsDirectory}/${namespace}_${name}_${uid}`,
    labels: { ...(kubernetes && podLabels({ name, namespace, uid })) },
    annotations: { ...(kubernetes && { "kubernetes.io/config.source": "api" }) },
    linux: {
      // All of a node's containers in control groups of its own: none outlives the node.
      cgroup_parent: `${cgroupParentOf(node.directory)}/pod${uid}`,
      security_context: { namespace_options: { network: "NODE" } },
    },
  };
}

async function containerConfig(node: ContainerdNode, pod: Pod, options: ContainerOptions) {
  const attempt = options.attempt ?? 0;
  const image = options.byName === true ? options.image : await imageId(node, options.image);
  const isKubernetes = "io.kubernetes.pod.uid" in pod.config.labels;
  return {
    metadata: { name: options.name, attempt },
    image: { image, user_specified_image: options.image },
    command: options.command ?? [],
    args: options.args ?? [],
    envs: options.env ?? [],
    mounts: options.mounts ?? [],
    labels: isKubernetes ? { "io.kubernetes.container.name": options.name, ...podLabels(pod) } : {},
    annotations: {
      ...(isKubernetes && { "io.kubernetes.container.restartCount": String(attempt) }),
    },
    log_path: `${options.name}/${attempt}.log`,
    linux: options.security === undefined ? {} : { security_context: options.security },
  };
}

function podLabels(pod: Pick<Pod, "name" | "namespace" | "uid">) {
  return {
    "io.kubernetes.pod.name": pod.name,
    "io.kubernetes.pod.namespace": pod.namespace,
    "io.kubernetes.pod.uid": pod.uid,
  };
}

async function imageId(node: ContainerdNode, name: string): Promise<string> {
  const { image } = await node.cri.call("ImageStatus", { image: { image: name } });
  if (image === null) throw new Error(`the node has no image ${name}: load it first`);
  return image.id;
}
