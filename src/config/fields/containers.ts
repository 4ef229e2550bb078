/** Flags for dead containers and sandboxes, deleted pods, and disk pressure. */
import { DECIDING, type FieldEntry, PODS, REMOVING, REPLAYED } from "../field.ts";
import { boolean, choice, duration, integer, optional, path, statements, url } from "../types.ts";

const COUNT = integer(-2_147_483_648);

export const containerFields = {
  minimumContainerTTLDuration: {
    type: duration("0s"),
    default: "0s",
    help: "keep containers that ended within this duration",
    doc: "Counts from the container's exit; with `--compat kubelet`, from its creation.",
    commands: DECIDING,
  },
  maximumDeadContainersPerContainer: {
    type: COUNT,
    default: "1",
    help: "dead instances to keep per container; negative: no limit",
    doc: "Instances are counted per pod and container name. The newest are kept.",
    unit: "containers",
    commands: DECIDING,
  },
  maximumDeadContainers: {
    type: COUNT,
    default: "-1",
    help: "dead containers to keep on the node; negative: no limit",
    doc: "Shared evenly among the containers that have dead instances.",
    unit: "containers",
    commands: DECIDING,
  },
  maxStopGracePeriod: {
    type: duration("2s"),
    default: "30s",
    help: "maximum grace period of a container that crigc stops",
    doc: "crigc stops only containers of deleted pods whose state the runtime does not know, with their pre-stop handler. With `--compat kubelet` the default is 24h.",
    commands: REMOVING,
  },
  collectForeign: {
    type: boolean,
    default: "false",
    help: "also collect containers and sandboxes not created by Kubernetes",
    doc: "Without it, those whose sandbox has no `io.kubernetes.pod.uid` label are kept.",
    commands: DECIDING,
  },
  podSource: {
    type: choice("auto", "cri", "kubelet-dir", "kubelet-api", "none"),
    default: "auto",
    help: "how to detect deleted pods",
    doc: "`kubelet-dir`: the directories in `ROOT/pods`. `kubelet-api`: the kubelet's `/pods`. `cri`: the runtime, by `--dead-pod-ttl`. `none`: no pod counts as deleted. `auto`: `kubelet-dir` if `ROOT/pods` exists, else `cri` if nothing on the node suggests a kubelet, else `none`.",
    commands: PODS,
  },
  kubeletEndpoint: {
    type: url,
    default: "https://127.0.0.1:10250",
    help: "address of the kubelet, for pod source kubelet-api",
    doc: "The identity may `get` `nodes/pods`, or `nodes/proxy` before Kubernetes 1.33. The read-only port is allowed as `http://`.",
    commands: PODS,
  },
  kubeletCAFile: {
    type: optional(path("file")),
    help: "certificate authority of the kubelet",
    doc: "PEM. Without it crigc sends no request over `https:`.",
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
    doc: "Read for each request, so that it can be rotated. Never sent over `http://`.",
    commands: PODS,
  },
  deadPodTTL: {
    type: duration("0s"),
    default: "24h",
    help: "time until a dead pod counts as deleted (cri)",
    doc: "Dead: two passes, at least 10 s apart, find no ready sandbox and no running container. Counts observed time, never the runtime's timestamps.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const pressureFields = {
  evictionHard: {
    type: statements("threshold"),
    default:
      "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
    help: "thresholds for immediate reclaim",
    doc: "Signals are `nodefs`, `imagefs` and `containerfs`, each `.available` and `.inodesFree`; `0%` or `100%` drops a threshold. The flag replaces the whole default, which beside a kubelet is 5 percent of the filesystem above the kubelet's thresholds. Memory and pid signals only warn.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionSoft: {
    type: statements("threshold"),
    help: "thresholds for reclaim after a grace period",
    doc: "Each needs a grace period in `--eviction-soft-grace-period`.",
    commands: REPLAYED,
    kubelet: true,
  },
  evictionSoftGracePeriod: {
    type: statements("grace"),
    help: "grace periods of the soft thresholds",
    doc: "A grace period of 0s makes the threshold a hard one.",
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
    doc: "Affects the reported condition only, not reclaim.",
    commands: REPLAYED,
    kubelet: true,
  },
} satisfies Readonly<Record<string, FieldEntry>>;
