/** Flags for all but images: containers and pods, disk pressure, directories, periods, and the outputs of the agent. */

import {
  CONFIGURED,
  DECIDING,
  type FieldEntry,
  PODS,
  REMOVING,
  RUNTIME,
  WITH_STATE,
} from "../field.ts";
import {
  address,
  boolean,
  choice,
  duration,
  integer,
  optional,
  path,
  relativePath,
  statements,
  url,
} from "../types.ts";

const COUNT = integer(-2_147_483_648);

export const containerFields = {
  minimumContainerTTLDuration: {
    type: duration("0s"),
    default: "0s",
    help: "keep containers that ended within this duration",
    doc: "With `--compat kubelet`, from creation.",
    commands: DECIDING,
  },
  maximumDeadContainersPerContainer: {
    type: COUNT,
    default: "1",
    help: "dead instances to keep per container; negative: no limit",
    doc: "Per pod and container name; keeps the newest.",
    commands: DECIDING,
  },
  maximumDeadContainers: {
    type: COUNT,
    default: "-1",
    help: "dead containers to keep on the node; negative: no limit",
    doc: "Shared evenly among containers with dead instances.",
    commands: DECIDING,
  },
  collectForeign: {
    type: boolean,
    default: "false",
    help: "also collect containers and sandboxes not created by Kubernetes",
    doc: "Their sandbox has no `io.kubernetes.pod.uid` label.",
    commands: DECIDING,
  },
  podSource: {
    type: choice("auto", "kubelet-dir", "cri", "none"),
    default: "auto",
    help: "how to detect deleted pods",
    doc: "`kubelet-dir`: directories in `ROOT/pods`. `cri`: the runtime, by `--dead-pod-ttl`. `none`: never. `auto`: the first if `ROOT/pods` exists, else the second if nothing on the node suggests a kubelet, else none.",
    commands: PODS,
  },
  kubeletEndpoint: {
    type: optional(url),
    help: "address of the kubelet: keep images of pods' specs",
    doc: "Such as `https://127.0.0.1:10250`. Needs `get` on `nodes/pods`, before Kubernetes 1.33 `nodes/proxy`. `http://` is for the read-only port.",
    commands: PODS,
  },
  kubeletCAFile: {
    type: optional(path("file")),
    help: "certificate authority of the kubelet",
    doc: "PEM. Needed for `https:`.",
    commands: PODS,
  },
  kubeletClientCert: {
    type: optional(path("file")),
    help: "client certificate for the kubelet",
    doc: "PEM, together with `--kubelet-client-key`.",
    commands: PODS,
  },
  kubeletClientKey: {
    type: optional(path("file")),
    help: "key of the client certificate",
    doc: "PEM, together with `--kubelet-client-cert`.",
    commands: PODS,
  },
  kubeletTokenFile: {
    type: optional(path("file")),
    help: "bearer token for the kubelet",
    doc: "Read for each request. Never sent over `http://`.",
    commands: PODS,
  },
  deadPodTTL: {
    type: duration("0s"),
    default: "24h",
    help: "time until a dead pod counts as deleted (cri)",
    doc: "Dead: without a ready sandbox or a running container in two passes. Counts uptime.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const pressureFields = {
  evictionHard: {
    type: statements("threshold"),
    default:
      "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
    help: "thresholds for immediate reclaim",
    doc: "Signals: `.available` and `.inodesFree` of `nodefs` and `imagefs`; `containerfs`, which follows one of them, memory and pid signals only warn. `0%` or `100%` drops a threshold. Replaces the whole default. Beside a kubelet, whose `ROOT/pods` exists, the default is 15% (inodes 10%) and 20% (10%).",
    kubelet: true,
  },
  evictionSoft: {
    type: statements("threshold"),
    help: "thresholds for reclaim after a grace period",
    doc: "Each needs an `--eviction-soft-grace-period`.",
    kubelet: true,
  },
  evictionSoftGracePeriod: {
    type: statements("grace"),
    help: "grace periods of the soft thresholds",
    doc: "With 0s the threshold is a hard one.",
    kubelet: true,
  },
  evictionMinimumReclaim: {
    type: statements("reclaim"),
    help: "space to free beyond the threshold",
    doc: "A quantity, or a percentage of the capacity.",
    kubelet: true,
  },
  evictionPressureTransitionPeriod: {
    type: duration("0s"),
    default: "5m",
    help: "time to report pressure after it has ended",
    doc: "Does not affect reclaim.",
    commands: ["run"],
    kubelet: true,
  },
} satisfies Readonly<Record<string, FieldEntry>>;

const PERIOD = duration("10ms");

export const directoryFields = {
  podLogsDir: {
    type: path("directory"),
    default: "/var/log/pods",
    help: "directory of pod logs",
    doc: "crigc touches only entries named `NAMESPACE_NAME_UID`.",
    commands: PODS,
    kubelet: true,
  },
  containerLogsDir: {
    type: path("directory"),
    default: "/var/log/containers",
    help: "directory of links to container logs",
    doc: "crigc deletes links to missing logs once their container is gone.",
    commands: PODS,
  },
  rootDir: {
    type: optional(path("directory")),
    defaultWords: "the first of /var/lib/kubelet and its like that exists, else /",
    help: "root directory of the kubelet; its filesystem is nodefs",
    doc: "Has the directory `pods`. By default also looks for those of k0s and MicroK8s.",
    commands: RUNTIME,
  },
  stateDir: {
    type: path("directory"),
    default: "/var/lib/crigc",
    help: "directory of ledger, history and hold",
    doc: "At most about 100 MB. Each runtime of a node needs its own; otherwise images stay too young.",
    commands: WITH_STATE,
  },
  runDir: {
    type: path("directory"),
    default: "/run/crigc",
    help: "directory of the agent's control socket",
    doc: "Only root can connect to the socket.",
    commands: CONFIGURED,
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const paceFields = {
  imageGCPeriod: {
    type: PERIOD,
    default: "5m",
    help: "time between image GC passes",
    doc: "The kubelet's is fixed at 5m.",
  },
  imageDetectionPeriod: {
    type: PERIOD,
    default: "5m",
    help: "time between checks of which images are in use",
    doc: "A gap between observations counts as unused time for at most twice this.",
  },
  imageCachePeriod: {
    type: PERIOD,
    default: "30s",
    help: "time between image lists for status and metrics",
    doc: "Never used for a decision.",
    commands: ["run"],
  },
  containerGCPeriod: {
    type: PERIOD,
    default: "1m",
    help: "time between container GC passes",
    doc: "Containers, sandboxes and logs.",
    commands: ["run"],
  },
  pressurePeriod: {
    type: PERIOD,
    default: "1s",
    help: "time between checks of disk pressure",
    doc: "While passes remove nothing, the time doubles, to 10 s at most.",
    commands: ["run"],
  },
  bootGrace: {
    type: duration("0s"),
    default: "5m",
    help: "grace period after a boot, without removals",
    doc: "Also, once a boot, after all containers vanished at once. 0s: none.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const agentFields = {
  metricsBindAddress: {
    type: optional(address),
    defaultWords: "off",
    help: "address of /metrics, /healthz, /readyz, such as 127.0.0.1:9419",
    doc: "The control socket always serves them.",
    commands: ["run"],
  },
  compat: {
    type: choice("none", "kubelet"),
    default: "none",
    help: "make the kubelet's decisions",
    doc: "`kubelet` implies `--boot-grace 0s` and `--collect-foreign`; contradicting flags are rejected.",
  },
  dryRun: {
    type: boolean,
    default: "false",
    help: "report what would be done and change nothing",
    doc: "In a configuration file it applies to `run`, `gc` and `rm` only.",
    commands: REMOVING,
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const outputFields = {
  config: {
    type: optional(relativePath("file")),
    defaultWords: "/etc/crigc/crigc.yaml if it exists",
    help: "configuration file, YAML or JSON",
    doc: "A `CrigcConfiguration` or `KubeletConfiguration`. A named file must exist.",
    commands: CONFIGURED,
    outsideFiles: true,
  },
  configDir: {
    type: optional(relativePath("directory")),
    defaultWords: "/etc/crigc/conf.d if it exists",
    help: "directory of drop-ins: *.yaml, *.yml, *.json, *.conf",
    doc: "Merged over the file in the order of their names.",
    commands: CONFIGURED,
    outsideFiles: true,
  },
  "logging.format": {
    type: choice("text", "json"),
    default: "text",
    help: "format of the log",
    doc: "`json` has the ID and timed steps of each pass.",
    commands: REMOVING,
  },
  "logging.verbosity": {
    flag: "v",
    type: integer(0, 5),
    default: "2",
    placeholder: "LEVEL",
    help: "verbosity of the log, 0 to 5",
    doc: "0 logs only warnings and errors, 5 explains every image.",
    commands: REMOVING,
  },
} satisfies Readonly<Record<string, FieldEntry>>;
