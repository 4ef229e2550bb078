/** The host paths of each runtime: the directory of its socket, and the store whose filesystem is measured. */

export interface RuntimePlaces {
  /** Directory of the socket, because a restarted runtime creates a new socket. */
  readonly socketDirectory: string;
  readonly imageStore: string;
  /** The distribution's root directory of the kubelet; `null`: the usual one. */
  readonly kubeletDirectory: string | null;
}

const KNOWN: readonly (readonly [socket: string, imageStore: string, kubelet?: string])[] = [
  ["/run/containerd/containerd.sock", "/var/lib/containerd"],
  ["/run/k3s/containerd/containerd.sock", "/var/lib/rancher"],
  [
    "/var/snap/microk8s/common/run/containerd.sock",
    "/var/snap/microk8s/common/var/lib/containerd",
    "/var/snap/microk8s/common/var/lib/kubelet",
  ],
  ["/run/k0s/containerd.sock", "/var/lib/k0s/containerd", "/var/lib/k0s/kubelet"],
  ["/run/crio/crio.sock", "/var/lib/containers"],
  ["/run/cri-dockerd.sock", "/var/lib/docker"],
];

export const DEFAULT_SOCKET = "/run/containerd/containerd.sock";

/** `null` if the socket's store is unknown. `/var/run` is `/run` on every distribution with systemd. */
export function placesOf(socket: string): RuntimePlaces | null {
  const path = socket.replace(/^\/var\/run\//, "/run/");
  const found = KNOWN.find(([known]) => known === path);
  if (found === undefined) return null;
  const [, imageStore, kubeletDirectory = null] = found;
  return { socketDirectory: directoryOf(path), imageStore, kubeletDirectory };
}

export const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
