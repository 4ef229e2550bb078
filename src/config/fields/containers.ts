/** Flags for dead containers and sandboxes, deleted pods, and disk pressure. */
import { DECIDING, type FieldEntry, PODS, REMOVING, REPLAYED } from "../field.ts";
import { boolean, choice, duration, integer, optional, path, statements, url } from "../types.ts";

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
  maxStopGracePeriod: {
    type: duration("2s"),
    default: "30s",
    help: "maximum grace period of a container that crigc stops",
    doc: "crigc stops only UNKNOWN containers of deleted pods, with their pre-stop handler. 24h with `--compat kubelet`.",
    commands: REMOVING,
  },
  collectForeign: {
    type: boolean,
    default: "false",
    help: "also collect containers and sandboxes not created by Kubernetes",
    doc: "Their sandbox has no `io.kubernetes.pod.uid` label.",
    commands: DECIDING,
  },
  podSource: {
    type: choice("auto", "cri", "kubelet-dir", "kubelet-api", "none"),
    default: "auto",
    help: "how to detect deleted pods",
    doc: "`kubelet-dir`: directories in `ROOT/pods`. `kubelet-api`: the kubelet's `/pods`. `cri`: the runtime, by `--dead-pod-ttl`. `none`: never. `auto`: `kubelet-dir` if `ROOT/pods` exists, else `cri` if nothing on the node suggests a kubelet, else `none`.",
    commands: PODS,
  },
  kubeletEndpoint: {
    type: url,
    default: "https://127.0.0.1:10250",
    help: "address of the kubelet, for pod source kubelet-api",
    doc: "Needs `get` on `nodes/pods`, before Kubernetes 1.33 `nodes/proxy`. `http://` is for the read-only port.",
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
    doc: "Dead: without a ready sandbox or a running container in two passes. Counts observed time.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const pressureFields = {
  evictionHard: {
    type: statements("threshold"),
    default:
      "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
    help: "thresholds for immediate reclaim",
    doc: "Signals: `.available` and `.inodesFree` of `nodefs` and `imagefs`; `containerfs`, which follows one of them, memory and pid signals only warn. `0%` or `100%` drops a threshold. Replaces the whole default, which beside a kubelet is 5 points above its thresholds.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionSoft: {
    type: statements("threshold"),
    help: "thresholds for reclaim after a grace period",
    doc: "Each needs an `--eviction-soft-grace-period`.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionSoftGracePeriod: {
    type: statements("grace"),
    help: "grace periods of the soft thresholds",
    doc: "With 0s the threshold is a hard one.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionMinimumReclaim: {
    type: statements("reclaim"),
    help: "space to free beyond the threshold",
    doc: "A quantity, or a percentage of the capacity.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionPressureTransitionPeriod: {
    type: duration("0s"),
    default: "5m",
    help: "time to report pressure after it has ended",
    doc: "Does not affect reclaim.",
    commands: REPLAYED,
    kubelet: true,
  },
} satisfies Readonly<Record<string, FieldEntry>>;
