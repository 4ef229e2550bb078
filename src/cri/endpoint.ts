/** Runtime endpoints: how they are written, and the well-known sockets. */

export type Endpoint =
  | {
      readonly kind: "unix";
      /** `unix:///run/containerd/containerd.sock`, as `openRuntime` takes it. */
      readonly endpoint: string;
      readonly path: string;
    }
  /** `message` says what was expected. */
  | { readonly kind: "refused"; readonly message: string };

/** The kernel's limit for the path of a socket. */
const pathBytesMax = 107;

/** Accepts `unix:///path` or a bare path, and nothing else: the node's runtime is never on the network. */
export function parseEndpoint(text: string): Endpoint {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1];
  const path = scheme === undefined ? text : text.replace(/^unix:(?:\/\/)?/, "");
  if (scheme !== undefined && scheme !== "unix")
    return refused(`only unix sockets are supported, not ${scheme}`);
  if (!path.startsWith("/")) return refused("the path of the socket must be absolute");
  if (path.includes("\0")) return refused("the path contains a NUL character");
  if (new TextEncoder().encode(path).length > pathBytesMax)
    return refused(`the path is longer than ${pathBytesMax} bytes, the limit of a socket`);
  return { kind: "unix", endpoint: `unix://${path}`, path };
}

function refused(fault: string): Endpoint {
  return {
    kind: "refused",
    message: `${fault}; use a path such as unix:///run/containerd/containerd.sock`,
  };
}

/** Default sockets of runtimes. A host may have several, for example Docker's own containerd. */
export const wellKnownSockets: readonly string[] = [
  "/run/containerd/containerd.sock",
  // k3s and rke2.
  "/run/k3s/containerd/containerd.sock",
  // microk8s.
  "/var/snap/microk8s/common/run/containerd.sock",
  // k0s.
  "/run/k0s/containerd.sock",
  "/run/crio/crio.sock",
  "/var/run/crio/crio.sock",
  "/run/cri-dockerd.sock",
];
