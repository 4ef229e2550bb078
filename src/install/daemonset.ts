/** A DaemonSet that runs the agent on every node of a cluster: host paths, and API access only for pod source kubelet-api. */
import type { Config, Paths } from "../config/config.ts";
import { hostAndPort } from "../model/values.ts";
import { ENGINE_ENVIRONMENT } from "./engine.ts";
import { kubeletAccess } from "./kubelet-access.ts";
import type { RuntimePlaces } from "./runtime-places.ts";
import type { GivenSetting } from "./settings.ts";
import { filled } from "./template.ts";
import template from "./templates/daemonset.txt" with { type: "text" };

export interface DaemonSetOptions {
  /** With a digest, so that every node runs the same image. */
  readonly image: string;
  readonly namespace: string;
  /** Path of the runtime's socket on the node. */
  readonly socket: string;
  readonly places: RuntimePlaces;
  /** The agent's paths; each must be the node's own directory. */
  readonly config: Config;
  readonly paths: Paths;
  readonly settings: readonly GivenSetting[];
}

export function daemonSet(options: DaemonSetOptions): string {
  const { config, places, paths, namespace, settings } = options;
  const rootDir = paths.rootDir ?? DEFAULT_KUBELET_DIRECTORY;
  const access = kubeletAccess(config, namespace, rootDir);
  const { flags, variables } = placedSettings(settings);
  const moved = movedDirectories(paths);
  const environment = [
    ["CRIGC_CONTAINER_RUNTIME_ENDPOINT", `unix://${options.socket}`] as const,
    ...ENGINE_ENVIRONMENT,
    ...variables,
  ].map(([name, text]) => `            - {name: ${name}, value: ${JSON.stringify(text)}}\n`);
  const mounts = moved.map(
    ({ name, path, isRead }) =>
      `            - {name: ${name}, mountPath: ${JSON.stringify(path)}${isRead ? ", readOnly: true" : ""}}\n`,
  );
  const volumes = moved.map(
    ({ name, path, isRead }) =>
      `        - {name: ${name}, hostPath: {path: ${JSON.stringify(path)}, type: ${isRead ? "Directory" : "DirectoryOrCreate"}}}\n`,
  );
  const { podLogsDir, containerLogsDir, stateDir } = paths;
  const { socketDirectory, imageStore } = places;
  return filled(template, {
    ...inJson({ namespace, image: options.image, rootDir, podLogsDir, containerLogsDir, stateDir }),
    ...inJson({ socketDirectory, imageStore, arguments: ["run", ...flags] }),
    documents: access.documents,
    podSpec: access.podSpec,
    environment: `${environment.join("")}${access.environment}`,
    ports: portsOf(config),
    probe: probeOf(config),
    mounts: `${mounts.join("")}${access.mounts}`,
    volumes: `${volumes.join("")}${access.volumes}`,
  });
}

const inJson = (values: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]));

/** A list item that a variable would split stays a flag. */
function placedSettings(settings: readonly GivenSetting[]) {
  const isSplit = ({ texts }: GivenSetting): boolean =>
    texts.length > 1 && texts.some((text) => /[,\s]/.test(text));
  return {
    flags: settings.filter(isSplit).flatMap(({ flags }) => flags),
    variables: settings
      .filter((setting) => !isSplit(setting))
      .map(({ variable, texts }) => [variable, texts.join(",").replaceAll("$", "$$$$")] as const),
  };
}

/** The kubelet asks at the pod's address. Otherwise each probe starts the whole executable. */
function probeOf({ metricsBindAddress }: Config): string {
  const host = metricsBindAddress === null ? "localhost" : hostAndPort(metricsBindAddress).host;
  return /^(localhost$|127\.|::1$)/.test(host)
    ? "exec: {command: [crigc, status]}"
    : "httpGet: {path: /healthz, port: metrics}";
}

function portsOf({ metricsBindAddress }: Config): string {
  return metricsBindAddress === null
    ? ""
    : `          ports:\n            - {name: metrics, containerPort: ${hostAndPort(metricsBindAddress).port}}\n`;
}

const DEFAULT_KUBELET_DIRECTORY = "/var/lib/kubelet";
/** Directory of the lock that every crigc of the node takes, wherever its control socket is. */
const LOCK_DIRECTORY = "/run/crigc";
const CONFIG_DIRECTORY = "/etc/crigc";

/** Directories that a flag moved out of the default mounts. */
function movedDirectories({ keepDir, runDir }: Paths) {
  const keeps = keepDir === CONFIG_DIRECTORY || keepDir.startsWith(`${CONFIG_DIRECTORY}/`);
  return [
    ...(runDir === LOCK_DIRECTORY ? [] : [{ name: "control", path: runDir, isRead: false }]),
    ...(keeps ? [] : [{ name: "keep", path: keepDir, isRead: true }]),
  ];
}
