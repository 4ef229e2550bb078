/** A DaemonSet that runs the agent on every node of a cluster: host paths, and API access only for pod source kubelet-api. */
import type { Config, Paths } from "../config/config.ts";
import { hostAndPort } from "../model/values.ts";
import { ENGINE_ENVIRONMENT } from "./engine.ts";
import { type KubeletAccess, kubeletAccess } from "./kubelet-access.ts";
import type { RuntimePlaces } from "./runtime-places.ts";
import type { GivenSetting } from "./settings.ts";

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
  const rootDir = options.paths.rootDir ?? DEFAULT_KUBELET_DIRECTORY;
  const access = kubeletAccess(options.config, options.namespace, rootDir);
  return [
    access.documents,
    head(options.namespace),
    podSpec(options, access),
    container(options, access),
    mounts(options),
    access.mounts,
    volumes(options),
    access.volumes,
  ].join("");
}

const head = (
  namespace: string,
): string => `# One agent per node. Its state is on the node (/var/lib/crigc) and outlives the pod.
# Set imageGCHighThresholdPercent: 100 in the kubelet's configuration, so that only crigc collects images.
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: crigc
  namespace: ${JSON.stringify(namespace)}
  labels: {app.kubernetes.io/name: crigc}
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: crigc}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 1}
  template:
    metadata:
      labels: {app.kubernetes.io/name: crigc}
`;

const podSpec = ({ image }: DaemonSetOptions, access: KubeletAccess): string => `    spec:
${access.podSpec}      enableServiceLinks: false
      hostNetwork: false
      hostPID: false
      hostIPC: false
      priorityClassName: system-node-critical
      nodeSelector: {kubernetes.io/os: linux}
      # Full or broken nodes need it most.
      tolerations:
        - operator: Exists
      # A removal in flight is finished first.
      terminationGracePeriodSeconds: 150
      securityContext:
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: crigc
          image: ${JSON.stringify(image)}
          imagePullPolicy: IfNotPresent
`;

const container = (options: DaemonSetOptions, access: KubeletAccess): string => {
  const { flags, variables } = placedSettings(options.settings);
  return `          command: [crigc]
          args: ${JSON.stringify(["run", ...flags])}
          # In the environment, so that "kubectl exec POD -- crigc doctor" uses the same settings.
          env:
${[
  ["CRIGC_CONTAINER_RUNTIME_ENDPOINT", `unix://${options.socket}`],
  ...ENGINE_ENVIRONMENT,
  ...variables,
]
  .map(([name, text]) => `            - {name: ${name}, value: ${JSON.stringify(text)}}\n`)
  .join(
    "",
  )}${access.environment}${portsOf(options.config)}          # Root, because root owns the files on the node, but without any capability.
          securityContext:
            privileged: false
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsUser: 0
            runAsGroup: 0
            capabilities: {drop: [ALL]}
          resources:
            requests: {cpu: 10m, memory: 100Mi}
            limits: {memory: 512Mi}
          livenessProbe:
            ${probeOf(options.config)}
            initialDelaySeconds: 60
            periodSeconds: 60
            timeoutSeconds: 10
            failureThreshold: 5
`;
};

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

const mounts = ({ places, paths }: DaemonSetOptions): string => `          volumeMounts:
            # The directory, because a restarted runtime creates a new socket.
            - {name: runtime, mountPath: ${quoted(places.socketDirectory)}, readOnly: true, mountPropagation: HostToContainer}
            # Measured, never written. With propagation the node can unmount what is mounted below while the pod runs.
            - {name: images, mountPath: ${quoted(places.imageStore)}, readOnly: true, mountPropagation: HostToContainer}
            - {name: kubelet, mountPath: ${quoted(paths.rootDir ?? DEFAULT_KUBELET_DIRECTORY)}, readOnly: true, mountPropagation: HostToContainer}
            - {name: pod-logs, mountPath: ${quoted(paths.podLogsDir)}}
            - {name: container-logs, mountPath: ${quoted(paths.containerLogsDir)}}
            - {name: state, mountPath: ${quoted(paths.stateDir)}}
            # Shared with crigc commands on the node itself, and with it the lock that serialises them.
            - {name: run, mountPath: ${LOCK_DIRECTORY}}
            - {name: configuration, mountPath: ${CONFIG_DIRECTORY}, readOnly: true}
${movedDirectories(paths)
  .map(
    ({ name, path, isRead }) =>
      `            - {name: ${name}, mountPath: ${quoted(path)}${isRead ? ", readOnly: true" : ""}}\n`,
  )
  .join("")}`;

const volumes = ({ places, paths }: DaemonSetOptions): string => `      volumes:
        - {name: runtime, hostPath: {path: ${quoted(places.socketDirectory)}, type: Directory}}
        - {name: images, hostPath: {path: ${quoted(places.imageStore)}, type: Directory}}
        - {name: kubelet, hostPath: {path: ${quoted(paths.rootDir ?? DEFAULT_KUBELET_DIRECTORY)}, type: Directory}}
        - {name: pod-logs, hostPath: {path: ${quoted(paths.podLogsDir)}, type: DirectoryOrCreate}}
        - {name: container-logs, hostPath: {path: ${quoted(paths.containerLogsDir)}, type: DirectoryOrCreate}}
        - {name: state, hostPath: {path: ${quoted(paths.stateDir)}, type: DirectoryOrCreate}}
        - {name: run, hostPath: {path: ${LOCK_DIRECTORY}, type: DirectoryOrCreate}}
        - {name: configuration, hostPath: {path: ${CONFIG_DIRECTORY}, type: DirectoryOrCreate}}
${movedDirectories(paths)
  .map(
    ({ name, path, isRead }) =>
      `        - {name: ${name}, hostPath: {path: ${quoted(path)}, type: ${isRead ? "Directory" : "DirectoryOrCreate"}}}\n`,
  )
  .join("")}`;

const quoted = (text: string): string => JSON.stringify(text);
