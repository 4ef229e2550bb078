/** Runtimes and distributions: a record each, and the only place that knows one by its name. Plain data, which any folder may read. */
import type { RuntimeInfo } from "../model/snapshot.ts";

export type Version = readonly [major: number, minor: number, patch: number];

interface Range {
  readonly from: Version;
  readonly until: Version;
}

interface Fault extends Range {
  readonly message: string;
  readonly advice: string;
}

interface Traits {
  /** The first version that mounts images as volumes; `null`: unknown, so any may. */
  readonly mountsImagesFrom: Version | null;
  /** An image takes at most so many percent of its size, which may be that of compressed layers. */
  readonly sizePercentMax: bigint;
  /** Its figures for the store count the images; otherwise only a directory of metadata. */
  readonly countsStore: boolean;
  /** Without room for its records it drops an image from its list and keeps the layers for good. */
  readonly removalNeedsRoom: boolean;
  /** What has layers, beside the directory that it reports. */
  readonly layerDirectories: readonly string[];
  readonly faults: readonly Fault[];
}

interface Runtime extends Traits {
  /** As people write it. */
  readonly name: string;
  /** In `Version`, in lower case. */
  readonly reportedName: string;
  /** The first version that speaks `runtime.v1`. */
  readonly supportedFrom: string;
  readonly sockets: readonly string[];
}

const UNKNOWN: Traits = {
  mountsImagesFrom: null,
  // Of compressed layers a removal was seen to free up to four times as much.
  sizePercentMax: 500n,
  countsStore: true,
  removalNeedsRoom: false,
  layerDirectories: [],
  faults: [],
};

const containerd: Runtime = {
  ...UNKNOWN,
  name: "containerd",
  reportedName: "containerd",
  supportedFrom: "1.6",
  sockets: ["/run/containerd/containerd.sock"],
  mountsImagesFrom: [2, 1, 0],
  layerDirectories: ["io.containerd.content.v1.content"],
  faults: [
    {
      from: [2, 0, 0],
      until: [2, 0, 5],
      message:
        "containerd 2.0.0 to 2.0.4 frees space long after a removal returns, so that a pass may remove more than needed",
      advice: "update containerd to 2.0.5, 2.1 or later",
    },
  ],
};

const crio: Runtime = {
  ...UNKNOWN,
  name: "CRI-O",
  reportedName: "cri-o",
  supportedFrom: "1.23",
  sockets: ["/run/crio/crio.sock", "/var/run/crio/crio.sock"],
  mountsImagesFrom: [1, 31, 0],
  // Those of unpacked layers.
  sizePercentMax: 125n,
  countsStore: false,
  removalNeedsRoom: true,
  layerDirectories: ["overlay"],
};

const dockerd: Runtime = {
  ...UNKNOWN,
  name: "cri-dockerd",
  reportedName: "docker",
  supportedFrom: "0.3",
  sockets: ["/run/cri-dockerd.sock"],
};

const runtimes = [containerd, crio, dockerd];

export const runtimeOf = ({ name }: Pick<RuntimeInfo, "name">): Traits =>
  runtimes.find(({ reportedName }) => reportedName === name.toLowerCase()) ?? UNKNOWN;

interface Distribution {
  readonly name: string;
  /** Of the containerd that it runs itself. */
  readonly sockets: readonly string[];
  readonly kubeletRoot: string;
  readonly kubeletConfigs: readonly string[];
  /** Services and programs that are or contain a kubelet. */
  readonly services: readonly string[];
  readonly programs: readonly string[];
}

const KUBELET_ROOT = "/var/lib/kubelet";

export const distributions: readonly Distribution[] = [
  {
    name: "kubeadm, EKS, AKS",
    sockets: [],
    kubeletRoot: KUBELET_ROOT,
    kubeletConfigs: [
      "/var/lib/kubelet/config.yaml",
      "/etc/kubernetes/kubelet/config.json",
      "/etc/kubernetes/kubelet/kubelet-config.json",
      "/etc/kubernetes/kubelet-config.yaml",
    ],
    services: ["kubelet", "snap.kubelet-eks.daemon"],
    programs: ["kubelet", "hyperkube"],
  },
  {
    name: "k3s",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    kubeletRoot: KUBELET_ROOT,
    kubeletConfigs: ["/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf"],
    services: ["k3s", "k3s-agent"],
    programs: ["k3s", "k3s-server", "k3s-agent"],
  },
  {
    name: "RKE2",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    kubeletRoot: KUBELET_ROOT,
    kubeletConfigs: ["/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf"],
    services: ["rke2-server", "rke2-agent"],
    programs: ["rke2", "rke2-server", "rke2-agent"],
  },
  {
    name: "k0s",
    sockets: ["/run/k0s/containerd.sock"],
    kubeletRoot: "/var/lib/k0s/kubelet",
    kubeletConfigs: ["/var/lib/k0s/kubelet-config.yaml"],
    services: ["k0scontroller", "k0sworker"],
    programs: ["k0s"],
  },
  {
    name: "MicroK8s",
    sockets: ["/var/snap/microk8s/common/run/containerd.sock"],
    kubeletRoot: "/var/snap/microk8s/common/var/lib/kubelet",
    kubeletConfigs: [],
    services: ["snap.microk8s.daemon-kubelite"],
    programs: ["kubelite"],
  },
];

/** A host may have several, for example Docker's own containerd. */
export const knownSockets: readonly string[] = [
  ...new Set([...runtimes, ...distributions].flatMap(({ sockets }) => sockets)),
];

/** `containerd 1.6, CRI-O 1.23, …`. */
export const supportedVersions = runtimes
  .map(({ name, supportedFrom }) => `${name} ${supportedFrom}`)
  .join(", ");

/** Of any runtime, beside the directory that it reports. */
export const layerDirectories = runtimes.flatMap((runtime) => runtime.layerDirectories);

/** An unknown runtime or version counts as one that does. */
export function mountsImages({
  name,
  version: text,
}: Pick<RuntimeInfo, "name" | "version">): boolean {
  const { mountsImagesFrom: first } = runtimeOf({ name });
  const version = parseVersion(text);
  return first === null || version === null || compareVersions(version, first) >= 0;
}

export const faultsOf = ({
  name,
  version,
}: Pick<RuntimeInfo, "name" | "version">): readonly Fault[] =>
  runtimeOf({ name }).faults.filter((fault) => isVersionWithin(version, fault));

/**
 * A pre-release counts as its version: `2.0.0-rc.1` is within a range from 2.0.0. Text that is not a version is in no
 * range.
 */
export function isVersionWithin(text: string, { from, until }: Range): boolean {
  const version = parseVersion(text);
  if (version === null) return false;
  return compareVersions(version, from) >= 0 && compareVersions(version, until) < 0;
}

function parseVersion(text: string): Version | null {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+)|\D|$)/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

const compareVersions = (one: Version, other: Version): number =>
  one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
