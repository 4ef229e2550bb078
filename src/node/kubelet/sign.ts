// Whether a kubelet belongs to this node, by files alone: its unit, its configuration, its root directory.

import { join } from "node:path";

import { mayExist } from "../files/may-exist.ts";

/**
 * Paths that show that a kubelet is or was on this node; empty if there are none. An inaccessible path counts as a
 * sign. `root` is the node's root directory, `rootDirectory` the kubelet's.
 */
export function kubeletSigns(root = "/", rootDirectory = "/var/lib/kubelet"): readonly string[] {
  return [...new Set([...units(), ...configurations, ...rootDirectories, rootDirectory])].filter(
    (path) => mayExist(join(root, path)),
  );
}

// k3s, rke2, k0s and microk8s contain the kubelet in their own program.
const unitNames = [
  "kubelet.service",
  "k3s.service",
  "k3s-agent.service",
  "rke2-server.service",
  "rke2-agent.service",
  "k0scontroller.service",
  "k0sworker.service",
  "snap.microk8s.daemon-kubelite.service",
  "snap.kubelet-eks.daemon.service",
] as const;

/** Where systemd looks for units; a later directory overrides earlier ones, in about this order. */
export const unitDirectories = [
  "/usr/lib/systemd/system",
  "/lib/systemd/system",
  "/usr/local/lib/systemd/system",
  "/run/systemd/system",
  "/etc/systemd/system",
] as const;

const serviceScripts = ["kubelet", "k3s", "k3s-agent", "k0scontroller", "k0sworker"] as const;

const rootDirectories = [
  "/var/lib/k0s/kubelet",
  "/var/snap/microk8s/common/var/lib/kubelet",
] as const;

const configurations = [
  "/var/lib/kubelet/config.yaml",
  "/var/lib/kubelet/kubeconfig",
  "/etc/kubernetes/kubelet.conf",
  "/etc/kubernetes/kubelet-config.yaml",
  "/etc/kubernetes/kubelet/config.json",
  "/etc/kubernetes/kubelet/kubelet-config.json",
  "/etc/default/kubelet",
  "/etc/sysconfig/kubelet",
] as const;

function units(): readonly string[] {
  return [
    ...unitDirectories.flatMap((directory) => unitNames.map((name) => `${directory}/${name}`)),
    ...serviceScripts.map((name) => `/etc/init.d/${name}`),
  ];
}
