/** Flags for dead containers and sandboxes, and for detecting deleted pods. */
import type { Field } from "../field.ts";
import { DECIDING, PODS, REMOVING } from "./commands.ts";

const COUNT = { kind: "integer", minimum: -2_147_483_648, maximum: 2_147_483_647 } as const;

export const containerFields = {
  minimumContainerTTLDuration: {
    flag: "minimum-container-ttl-duration",
    type: { kind: "duration", minimum: "0s" },
    default: "0s",
    help: "keep containers that ended within this duration",
    doc: "Counts from the container's exit; with `--compat kubelet`, from its creation.",
    commands: DECIDING,
  },
  maximumDeadContainersPerContainer: {
    flag: "maximum-dead-containers-per-container",
    type: COUNT,
    default: "1",
    help: "dead instances to keep per container; negative: no limit",
    doc: "Instances are counted per pod and container name. The newest are kept.",
    unit: "containers",
    commands: DECIDING,
  },
  maximumDeadContainers: {
    flag: "maximum-dead-containers",
    type: COUNT,
    default: "-1",
    help: "dead containers to keep on the node; negative: no limit",
    doc: "Shared evenly among the containers that have dead instances.",
    unit: "containers",
    commands: DECIDING,
  },
  maxStopGracePeriod: {
    flag: "max-stop-grace-period",
    type: { kind: "duration", minimum: "2s" },
    default: "30s",
    help: "maximum grace period of a container that crigc stops",
    doc: "crigc stops a container only if its pod was deleted and the runtime does not know its state, and runs its pre-stop handler. It cuts a longer grace period recorded by the kubelet to this, so that no container holds up collection. With `--compat kubelet` the default is 24h.",
    commands: REMOVING,
  },
  collectForeign: {
    flag: "collect-foreign",
    type: { kind: "boolean" },
    default: "false",
    help: "also collect containers and sandboxes not created by Kubernetes",
    doc: "Without it, containers whose sandbox has no `io.kubernetes.pod.uid` label are listed as foreign and kept.",
    commands: DECIDING,
  },
  podSource: {
    flag: "pod-source",
    type: { kind: "choice", choices: ["auto", "cri", "kubelet-dir", "kubelet-api", "none"] },
    default: "auto",
    help: "how to detect deleted pods",
    doc: "`kubelet-dir`: the directories in `ROOT/pods`. `kubelet-api`: the kubelet's `/pods`. `cri`: the runtime, by `--dead-pod-ttl`. `none`: no pod counts as deleted. `auto`: `kubelet-dir` if `ROOT/pods` exists, else `cri` if nothing on the node suggests a kubelet, else `none`.",
    commands: PODS,
  },
  kubeletEndpoint: {
    flag: "kubelet-endpoint",
    type: { kind: "url" },
    default: "https://127.0.0.1:10250",
    help: "address of the kubelet, for pod source kubelet-api",
    doc: "The identity may `get` `nodes/pods`, or `nodes/proxy` before Kubernetes 1.33. The read-only port is allowed as `http://`.",
    commands: PODS,
  },
  kubeletCAFile: {
    flag: "kubelet-ca-file",
    type: { kind: "path", of: "file", optional: true },
    help: "certificate authority of the kubelet",
    doc: "PEM. crigc always verifies the kubelet's certificate; without this file it sends no request over `https:`.",
    commands: PODS,
  },
  kubeletClientCert: {
    flag: "kubelet-client-cert",
    type: { kind: "path", of: "file", optional: true },
    help: "client certificate for the kubelet",
    doc: "PEM, together with `--kubelet-client-key`.",
    commands: PODS,
  },
  kubeletClientKey: {
    flag: "kubelet-client-key",
    type: { kind: "path", of: "file", optional: true },
    help: "key of the client certificate",
    doc: "PEM, together with `--kubelet-client-cert`.",
    commands: PODS,
  },
  kubeletTokenFile: {
    flag: "kubelet-token-file",
    type: { kind: "path", of: "file", optional: true },
    help: "bearer token for the kubelet",
    doc: "Read for each request, so that it can be rotated. Never sent over `http://`.",
    commands: PODS,
  },
  deadPodTTL: {
    flag: "dead-pod-ttl",
    type: { kind: "duration", minimum: "0s" },
    default: "24h",
    help: "time until a dead pod counts as deleted (cri)",
    doc: "A pod is dead if two passes, at least 10 s apart, find no ready sandbox and no running container. Only time that crigc observed counts, never the runtime's timestamps.",
    commands: DECIDING,
  },
} as const satisfies Readonly<Record<string, Field>>;
