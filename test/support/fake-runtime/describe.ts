// How a test describes a node: plain data, JSON as well, with a default for everything but what the test is about.
import { fromRfc3339 } from "../../../src/model/time.ts";

export interface LayerDescription {
  readonly id: string;
  /** What the layer takes on disk. */
  readonly bytes: number;
}

export interface ImageDescription {
  readonly id: string;
  readonly repoTags?: readonly string[];
  readonly repoDigests?: readonly string[];
  /** As reported; the sum of the layers by default. */
  readonly sizeBytes?: number | bigint;
  readonly pinned?: boolean;
  /** An OCI artifact on CRI-O: its verbose status names no layers. */
  readonly isArtifact?: boolean;
  /** Layers with the same ID are shared. By default one of its own, of `sizeBytes`. */
  readonly layers?: readonly LayerDescription[];
  /** When it was built, RFC 3339; absent: its verbose status does not say. */
  readonly builtAt?: string;
}

/** RFC 3339, or nanoseconds since 1970 as text or bigint. */
export type Time = string | bigint;

export interface SandboxDescription {
  readonly id: string;
  readonly uid?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly attempt?: number;
  readonly state?: "ready" | "not-ready";
  readonly createdAt?: Time;
  /** By default those that Kubernetes sets, from uid, name and namespace. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The pod's address; "" in the node's own network. */
  readonly ip?: string;
}

export interface ContainerDescription {
  readonly id: string;
  readonly sandboxId: string;
  readonly name?: string;
  readonly attempt?: number;
  readonly state?: "created" | "running" | "exited" | "unknown";
  readonly createdAt?: Time;
  /** What it was created from: an image's ID, tag or digest. */
  readonly image: string;
  /** By default the ID of the image that `image` names. */
  readonly imageRef?: string;
  readonly imageId?: string;
  /** References of image volumes. */
  readonly imageVolumes?: readonly string[];
  /** By default those that Kubernetes sets, from the sandbox. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface FilesystemDescription {
  readonly mountpoint: string;
  /** `null`: the runtime does not say. By default what the layers take. */
  readonly usedBytes?: number | null;
  readonly inodesUsed?: number | null;
}

export interface NodeDescription {
  readonly images?: readonly ImageDescription[];
  readonly sandboxes?: readonly SandboxDescription[];
  readonly containers?: readonly ContainerDescription[];
  /** By default one at the store's directory, or at `/var/lib/fake-runtime` without one. */
  readonly imageFilesystems?: readonly FilesystemDescription[];
  readonly containerFilesystems?: readonly FilesystemDescription[];
}

/** An ID as runtimes make them: 64 hex digits, the same for the same seed. */
export function hexId(seed: string | number): string {
  return new Bun.CryptoHasher("sha256").update(`fake ${seed}`).digest("hex");
}

/** An image's ID: `sha256:` and 64 hex digits. */
export const imageIdOf = (seed: string | number): string => `sha256:${hexId(seed)}`;

/** The labels that the kubelet gives a sandbox; a container has its own name beside them. */
export function kubernetesLabels(pod: {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}): Readonly<Record<string, string>> {
  return {
    "io.kubernetes.pod.uid": pod.uid,
    "io.kubernetes.pod.name": pod.name,
    "io.kubernetes.pod.namespace": pod.namespace,
  };
}

export function nanoseconds(time: Time): bigint {
  if (typeof time === "bigint") return time;
  const at = /^-?\d+$/.test(time) ? BigInt(time) : fromRfc3339(time);
  if (at === null) throw new Error(`this is no time: ${time}`);
  return at;
}
