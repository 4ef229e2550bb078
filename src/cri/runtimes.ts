/** Runtimes and distributions: a record each, and the only place that knows one by its name. Plain data, which any folder may read. */
import type { RuntimeInfo } from "../model/snapshot.ts";

/** Compares as versions do. */
const version = (major: number, minor: number, patch = 0): number =>
  major * 1_000_000 + minor * 1_000 + patch;

interface Fault {
  readonly from: number;
  readonly until: number;
  readonly message: string;
  readonly advice: string;
}

interface Runtime {
  /** In `Version`, in lower case. */
  readonly reportedName: string;
  readonly sockets: readonly string[];
  /** The first version that mounts images as volumes; `null`: unknown, so any may. */
  readonly mountsImagesFrom: number | null;
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

const UNKNOWN: Runtime = {
  reportedName: "",
  sockets: [],
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
  reportedName: "containerd",
  sockets: ["/run/containerd/containerd.sock"],
  mountsImagesFrom: version(2, 1),
  layerDirectories: ["io.containerd.content.v1.content"],
  faults: [
    {
      from: version(2, 0),
      until: version(2, 0, 5),
      message:
        "containerd 2.0.0 to 2.0.4 frees space long after a removal returns, so that a pass may remove more than needed",
      advice: "update containerd to 2.0.5, 2.1 or later",
    },
  ],
};

const crio: Runtime = {
  ...UNKNOWN,
  reportedName: "cri-o",
  sockets: ["/run/crio/crio.sock", "/var/run/crio/crio.sock"],
  mountsImagesFrom: version(1, 31),
  // Those of unpacked layers.
  sizePercentMax: 125n,
  countsStore: false,
  removalNeedsRoom: true,
  layerDirectories: ["overlay"],
};

const dockerd: Runtime = {
  ...UNKNOWN,
  reportedName: "docker",
  sockets: ["/run/cri-dockerd.sock"],
};

const runtimes = [containerd, crio, dockerd];

export const runtimeOf = ({ name }: Pick<RuntimeInfo, "name">): Runtime =>
  runtimes.find(({ reportedName }) => reportedName === name.toLowerCase()) ?? UNKNOWN;

interface Distribution {
  readonly name: string;
  /** Of the containerd that it runs itself. */
  readonly sockets: readonly string[];
  readonly kubeletRoot: string;
  readonly kubeletConfigs: readonly string[];
  /** That are or contain a kubelet. */
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
    programs: ["kubelet", "hyperkube"],
  },
  {
    name: "k3s",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    kubeletRoot: KUBELET_ROOT,
    kubeletConfigs: ["/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf"],
    programs: ["k3s", "k3s-server", "k3s-agent"],
  },
  {
    name: "RKE2",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    kubeletRoot: KUBELET_ROOT,
    kubeletConfigs: ["/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf"],
    programs: ["rke2", "rke2-server", "rke2-agent"],
  },
  {
    name: "k0s",
    sockets: ["/run/k0s/containerd.sock"],
    kubeletRoot: "/var/lib/k0s/kubelet",
    kubeletConfigs: ["/var/lib/k0s/kubelet-config.yaml"],
    programs: ["k0s"],
  },
  {
    name: "MicroK8s",
    sockets: ["/var/snap/microk8s/common/run/containerd.sock"],
    kubeletRoot: "/var/snap/microk8s/common/var/lib/kubelet",
    kubeletConfigs: [],
    programs: ["kubelite"],
  },
];

/** A host may have several, for example Docker's own containerd. */
export const knownSockets: readonly string[] = [
  ...new Set([...runtimes, ...distributions].flatMap(({ sockets }) => sockets)),
];

/** The first versions that speak `runtime.v1`. */
export const supportedVersions = "containerd 1.6, CRI-O 1.23, cri-dockerd 0.3";

/** Of any runtime, beside the directory that it reports. */
export const layerDirectories = runtimes.flatMap((runtime) => runtime.layerDirectories);

type Named = Pick<RuntimeInfo, "name" | "version">;

/** An unknown runtime or version counts as one that does. */
export function mountsImages(runtime: Named): boolean {
  const from = runtimeOf(runtime).mountsImagesFrom;
  return from === null || (versionOf(runtime) ?? Infinity) >= from;
}

export const faultsOf = (runtime: Named): readonly Fault[] =>
  runtimeOf(runtime).faults.filter(({ from, until }) => {
    const its = versionOf(runtime);
    return its !== null && its >= from && its < until;
  });

/** A pre-release counts as its version; `null`: the text is not a version. */
function versionOf(runtime: Named): number | null {
  const [, ...parts] = /^v?(\d+)\.(\d+)(?:\.(\d+)|\D|$)/.exec(runtime.version) ?? [];
  const [major = null, minor = 0, patch = 0] = parts.map((part) => Number(part ?? 0));
  return major === null ? null : version(major, minor, patch);
}
