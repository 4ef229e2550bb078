/** Which host paths belong to which runtime: its socket's directory and the store whose filesystem is measured. */

export interface RuntimePlaces {
  /** Directory of the socket: the socket itself is made anew when the runtime starts again. */
  readonly socketDirectory: string;
  readonly imageStore: string;
}

const KNOWN: readonly (readonly [socket: string, imageStore: string])[] = [
  ["/run/containerd/containerd.sock", "/var/lib/containerd"],
  ["/run/k3s/containerd/containerd.sock", "/var/lib/rancher"],
  ["/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/common/var/lib/containerd"],
  ["/run/k0s/containerd.sock", "/var/lib/k0s/containerd"],
  ["/run/crio/crio.sock", "/var/lib/containers"],
  ["/run/cri-dockerd.sock", "/var/lib/docker"],
];

export const DEFAULT_SOCKET = "/run/containerd/containerd.sock";

/** `null` where the store of the socket is not known. `/var/run` is `/run` on every distribution that has systemd. */
export function placesOf(socket: string): RuntimePlaces | null {
  const path = socket.replace(/^\/var\/run\//, "/run/");
  const store = KNOWN.find(([known]) => known === path)?.[1];
  return store === undefined ? null : { socketDirectory: directoryOf(path), imageStore: store };
}

export const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
