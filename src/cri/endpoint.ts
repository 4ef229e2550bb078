/** Where runtimes listen: the forms in which an endpoint is written, and the sockets that are known by heart. */

export type Endpoint =
  | {
      readonly kind: "unix";
      /** `unix:///run/containerd/containerd.sock`: what `openRuntime` takes. */
      readonly endpoint: string;
      readonly path: string;
    }
  /** `message` says what was expected. */
  | { readonly kind: "refused"; readonly message: string };

/** What the kernel takes as the path of a socket, in bytes. */
const pathBytesMax = 107;

/** `unix:///path`, or the bare path. Nothing else: what speaks for the node does not come over a network. */
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

/** Where runtimes listen by default. A host may have several of them, and Docker's own containerd beside. */
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
