/** What `crigc print` writes for other machines: a cloud-config for their first boot, and a DaemonSet for a cluster. */

import type { Config } from "../config/config.ts";
import { hostAndPort, shellQuoted } from "../model/values.ts";
import {
  ENGINE_ENVIRONMENT,
  filled,
  type GivenSetting,
  givenSettings,
  settingsDocument,
} from "./service.ts";
import cloudConfigTemplate from "./templates/cloud-config.txt" with { type: "text" };
import daemonSetTemplate from "./templates/daemonset.txt" with { type: "text" };
import rights from "./templates/kubelet-rights.txt" with { type: "text" };

export type BinarySource =
  /** Already in the machine's image. */
  | { readonly kind: "image"; readonly path: string }
  /** Fetched, and run only if its checksum matches. */
  | { readonly kind: "mirror"; readonly url: string; readonly sha256: string }
  /** On a disk, ISO or stick with this filesystem label. */
  | { readonly kind: "disk"; readonly label: string; readonly path: string };

export interface CloudConfigOptions {
  readonly source: BinarySource;
  readonly settings: readonly GivenSetting[];
  /** Keep the images present at the first start. */
  readonly baseline: boolean;
}

const SOURCE_WORDS = {
  image: "from the machine's own image",
  mirror: "from a mirror, after verifying its checksum,",
  disk: "from an attached disk",
} as const;

/**
 * Settings become a drop-in, so that `install` still writes its commented configuration. A script works below /var/lib,
 * because /tmp and /var/tmp are often mounted noexec; its first failure stops it, and cloud-init's log names it.
 */
export function cloudConfig({ source, settings, baseline }: CloudConfigOptions): string {
  const install = ["install", "--start", ...(baseline ? ["--baseline"] : [])];
  const path = source.kind === "mirror" ? "" : source.path;
  const { url, sha256 } = source.kind === "mirror" ? source : { url: "", sha256: "" };
  const label = source.kind === "disk" ? source.label : "";
  const lines = settings.length === 0 ? [] : settingsDocument(settings).trimEnd().split("\n");
  return filled(cloudConfigTemplate, {
    how: SOURCE_WORDS[source.kind],
    settings: settings.length > 0,
    document: lines.map((line) => `      ${line}\n`).join(""),
    image: source.kind === "image",
    mirror: source.kind === "mirror",
    disk: source.kind === "disk",
    script: source.kind !== "image",
    arguments: [path, ...install].map((word) => JSON.stringify(word)).join(", "),
    install: install.join(" "),
    url: shellQuoted(url),
    sum: shellQuoted(`${sha256}  `),
    device: shellQuoted(`/dev/disk/by-label/${label}`),
    path: shellQuoted(path.replace(/^\/+/, "")),
  });
}

export interface DaemonSetOptions {
  /** With a digest, so that every node runs the same image. */
  readonly image: string;
  readonly namespace: string;
  /** Path of the runtime's socket on the node. */
  readonly socket: string;
  readonly places: RuntimePlaces;
  /** The agent's; each directory in it must be the node's own. */
  readonly config: Config;
}

/** The host paths of a runtime. */
export interface RuntimePlaces {
  /** Directory of the socket, because a restarted runtime creates a new socket. */
  readonly socketDirectory: string;
  /** The store whose filesystem is measured. */
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

const DEFAULT_KUBELET_DIRECTORY = "/var/lib/kubelet";
/** Directory of the lock that every crigc of the node takes, wherever its control socket is. */
const LOCK_DIRECTORY = "/run/crigc";

export function daemonSet(options: DaemonSetOptions): string {
  const { config, places, namespace } = options;
  const { values } = config;
  const { podLogsDir, containerLogsDir, stateDir, runDir, keepDir } = values;
  const { socketDirectory, imageStore } = places;
  const rootDir = values.rootDir ?? places.kubeletDirectory ?? DEFAULT_KUBELET_DIRECTORY;
  const isElsewhere = values.rootDir === null && places.kubeletDirectory !== null;
  const settings = givenSettings(config).filter((it) => it.name !== "containerRuntimeEndpoint");
  // A list item that a variable would split stays a flag.
  const isSplit = ({ texts }: GivenSetting): boolean =>
    texts.length > 1 && texts.some((text) => /[,\s]/.test(text));
  const flags = settings.filter(isSplit).flatMap((setting) => setting.flags);
  const environment = [
    ["CRIGC_CONTAINER_RUNTIME_ENDPOINT", `unix://${options.socket}`] as const,
    ...(isElsewhere ? [["CRIGC_ROOT_DIR", rootDir] as const] : []),
    ...ENGINE_ENVIRONMENT,
    ...settings
      .filter((setting) => !isSplit(setting))
      .map(({ variable, texts }) => [variable, texts.join(",").replaceAll("$", "$$$$")] as const),
  ].map(([name, text]) => `            - {name: ${name}, value: ${JSON.stringify(text)}}\n`);
  const certificatePath = `${rootDir}/pki/kubelet.crt`;
  return filled(daemonSetTemplate, {
    ...inJson({ namespace, image: options.image, rootDir, podLogsDir, containerLogsDir, stateDir }),
    ...inJson({ socketDirectory, imageStore, arguments: ["run", ...flags], runDir, keepDir }),
    ...inJson({ certificatePath }),
    ...kubeletAccess(config, namespace),
    environment: environment.join(""),
    metrics: values.metricsBindAddress !== null,
    metricsPort: String(hostAndPort(values.metricsBindAddress ?? ":0").port),
    probe: probeOf(values),
    control: runDir !== LOCK_DIRECTORY,
    keep: !`${keepDir}/`.startsWith("/etc/crigc/"),
  });
}

const inJson = (values: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]));

/** What an agent in a pod needs for the kubelet's API, unless flags give it: a token and a certificate. */
function kubeletAccess({ kubelet }: Config, namespace: string) {
  const api = kubelet !== null;
  const isSecure = kubelet?.endpoint.startsWith("https:") === true;
  return {
    api,
    documents: api ? filled(rights, { namespace: JSON.stringify(namespace) }) : "",
    token: api && isSecure && kubelet?.tokenFile === null && kubelet?.clientCertFile === null,
    certificate: api && isSecure && kubelet?.caFile === null,
  };
}

/** The kubelet asks at the pod's address. Otherwise each probe starts the whole executable. */
function probeOf({ metricsBindAddress }: Config["values"]): string {
  const host = metricsBindAddress === null ? "localhost" : hostAndPort(metricsBindAddress).host;
  return /^(localhost$|127\.|::1$)/.test(host)
    ? "exec: {command: [crigc, status]}"
    : "httpGet: {path: /healthz, port: metrics}";
}
