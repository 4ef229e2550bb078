/** A DaemonSet that runs the agent on every node of a cluster: host paths and no right beside them, no access to the API. */
import type { Paths } from "../config/config.ts";
import type { RuntimePlaces } from "./runtime-places.ts";

export interface DaemonSetOptions {
  /** With a digest, so that every node runs the same. */
  readonly image: string;
  readonly namespace: string;
  /** Path of the runtime's socket on the node. */
  readonly socket: string;
  readonly places: RuntimePlaces;
  /** As the agent is told by its flags: each has to be the node's own directory. */
  readonly paths: Paths;
  /** Further arguments of `run`. */
  readonly flags: readonly string[];
}

export const daemonSet = (options: DaemonSetOptions): string =>
  [
    head(options.namespace),
    podSpec(options),
    container(options),
    mounts(options),
    volumes(options),
  ].join("");

const head = (
  namespace: string,
): string => `# One agent a node. Its state lies on the node (/var/lib/crigc), so that it outlives the pod.
# Beside it, set imageGCHighThresholdPercent: 100 in the kubelet's configuration: one of the two collects, not both.
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

const podSpec = ({ image }: DaemonSetOptions): string => `    spec:
      # It speaks to the runtime's socket and to nothing else.
      automountServiceAccountToken: false
      enableServiceLinks: false
      hostNetwork: false
      hostPID: false
      hostIPC: false
      priorityClassName: system-node-critical
      nodeSelector: {kubernetes.io/os: linux}
      # A node that is full or broken needs it most.
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

const container = ({ socket, flags }: DaemonSetOptions): string => `          command: [crigc]
          args:
${["run", `--container-runtime-endpoint=unix://${socket}`, ...flags].map((it) => `            - ${JSON.stringify(it)}\n`).join("")}          # Root on the node's files that root owns, without any of root's capabilities.
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
            exec: {command: [crigc, status]}
            initialDelaySeconds: 60
            periodSeconds: 60
            timeoutSeconds: 10
            failureThreshold: 5
`;

const DEFAULT_KUBELET_DIRECTORY = "/var/lib/kubelet";
/** Of the lock that every crigc of the node takes, wherever its control socket is. */
const LOCK_DIRECTORY = "/run/crigc";
const CONFIG_DIRECTORY = "/etc/crigc";

/** Directories that a flag moved away from where they are mounted anyhow. */
function movedDirectories({ keepDir, runDir }: Paths) {
  const keeps = keepDir === CONFIG_DIRECTORY || keepDir.startsWith(`${CONFIG_DIRECTORY}/`);
  return [
    ...(runDir === LOCK_DIRECTORY ? [] : [{ name: "control", path: runDir, isRead: false }]),
    ...(keeps ? [] : [{ name: "keep", path: keepDir, isRead: true }]),
  ];
}

const mounts = ({ places, paths }: DaemonSetOptions): string => `          volumeMounts:
            # The directory, since a runtime that starts again makes its socket anew.
            - {name: runtime, mountPath: ${quoted(places.socketDirectory)}, readOnly: true, mountPropagation: HostToContainer}
            # Measured, never written. Propagation lets the node unmount what is mounted below while the pod runs.
            - {name: images, mountPath: ${quoted(places.imageStore)}, readOnly: true, mountPropagation: HostToContainer}
            - {name: kubelet, mountPath: ${quoted(paths.rootDir ?? DEFAULT_KUBELET_DIRECTORY)}, readOnly: true, mountPropagation: HostToContainer}
            - {name: pod-logs, mountPath: ${quoted(paths.podLogsDir)}}
            - {name: container-logs, mountPath: ${quoted(paths.containerLogsDir)}}
            - {name: state, mountPath: ${quoted(paths.stateDir)}}
            # Shared with a crigc on the node itself, and the lock that serialises the two with it.
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
