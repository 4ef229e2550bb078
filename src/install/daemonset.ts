/** A DaemonSet that runs the agent on every node of a cluster: host paths and no right beside them, no access to the API. */
import type { RuntimePlaces } from "./runtime-places.ts";

export interface DaemonSetOptions {
  /** With a digest, so that every node runs the same. */
  readonly image: string;
  readonly namespace: string;
  /** Path of the runtime's socket on the node. */
  readonly socket: string;
  readonly places: RuntimePlaces;
  /** Further arguments of `run`. */
  readonly flags: readonly string[];
}

export const daemonSet = (options: DaemonSetOptions): string =>
  [
    head(options.namespace),
    podSpec(options),
    container(options),
    mounts(options.places),
    volumes(options.places),
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

const mounts = ({ socketDirectory, imageStore }: RuntimePlaces): string => `          volumeMounts:
            # The directory, since a runtime that starts again makes its socket anew.
            - {name: runtime, mountPath: ${JSON.stringify(socketDirectory)}, readOnly: true, mountPropagation: HostToContainer}
            # Measured, never written. Propagation lets the node unmount what is mounted below while the pod runs.
            - {name: images, mountPath: ${JSON.stringify(imageStore)}, readOnly: true, mountPropagation: HostToContainer}
            - {name: kubelet, mountPath: /var/lib/kubelet, readOnly: true, mountPropagation: HostToContainer}
            - {name: pod-logs, mountPath: /var/log/pods}
            - {name: container-logs, mountPath: /var/log/containers}
            - {name: state, mountPath: /var/lib/crigc}
            # Shared with a crigc on the node itself, and the lock that serialises the two with it.
            - {name: run, mountPath: /run/crigc}
            - {name: configuration, mountPath: /etc/crigc, readOnly: true}
`;

const volumes = ({ socketDirectory, imageStore }: RuntimePlaces): string => `      volumes:
        - {name: runtime, hostPath: {path: ${JSON.stringify(socketDirectory)}, type: Directory}}
        - {name: images, hostPath: {path: ${JSON.stringify(imageStore)}, type: Directory}}
        - {name: kubelet, hostPath: {path: /var/lib/kubelet, type: Directory}}
        - {name: pod-logs, hostPath: {path: /var/log/pods, type: DirectoryOrCreate}}
        - {name: container-logs, hostPath: {path: /var/log/containers, type: DirectoryOrCreate}}
        - {name: state, hostPath: {path: /var/lib/crigc, type: DirectoryOrCreate}}
        - {name: run, hostPath: {path: /run/crigc, type: DirectoryOrCreate}}
        - {name: configuration, hostPath: {path: /etc/crigc, type: DirectoryOrCreate}}
`;
