// Reads the pods of this node from the pod source, and the marks of their containers; policy judges what they mean.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { messageOf } from "../../model/errors.ts";
import { type PodUid, podUid } from "../../model/ids.ts";
import type { ContainerMark } from "../../model/ledger.ts";
import type { HostReader } from "../../model/ports.ts";
import type { PodReading, PodRecordSeen, PodSource } from "../../model/snapshot.ts";
import { instant } from "../../model/time.ts";
import { mapBounded } from "../../model/values.ts";
import { hostError, isAbsent, mayExist } from "../files.ts";
import type { KubeletOptions } from "../http.ts";
import { readManifests } from "./pod-documents.ts";

export interface PodSourceOptions {
  readonly source: "auto" | PodSource | "none";
  /** `--root-dir`: the kubelet's; "/" on a node without one. */
  readonly rootDirectory: string;
  /** Where to look for signs of a kubelet; default "/". */
  readonly nodeRoot?: string;
  /** A kubelet was found before: pods are not those of the runtime alone, even if all its files vanished. */
  readonly hadKubelet?: boolean;
  readonly kubelet: KubeletOptions;
  /** Files or directories of static pods' manifests. */
  readonly manifestPaths?: readonly string[];
}

/** Never rejects: a failing source is a reading of kind `failed`. Decided each time, because kubelets come and go. */
export async function readPods(
  options: PodSourceOptions,
  signal: AbortSignal,
): Promise<PodReading> {
  const [pods, manifests] = await Promise.all([
    readSource(options, signal),
    readManifests(options.manifestPaths ?? []),
  ]);
  return manifests.length === 0 ? pods : { ...pods, manifests };
}

/**
 * What a reading of some seconds ago lacks, for a pass that removes images: manifests, and pods whose images only the
 * kubelet's own list names. That list is long; a new directory shows that it has grown.
 */
export async function newerPods(
  options: PodSourceOptions,
  before: PodReading,
  signal: AbortSignal,
): Promise<PodReading> {
  if (before.kind === "ready" && before.source === "kubelet-api") {
    const known = new Set(before.pods.map(({ uid }) => uid));
    const directories = await directoryPods(options.rootDirectory).catch(() => null);
    if (directories?.every(({ uid }) => known.has(uid)) !== true) return readPods(options, signal);
  }
  // None is dropped: a file that is being written names too little.
  const known = before.manifests ?? [];
  const found = await readManifests(options.manifestPaths ?? []);
  const added = found.filter((one) => !known.some((it) => Bun.deepEquals(it, one)));
  return added.length === 0 ? before : { ...before, manifests: [...known, ...added] };
}

async function readSource(options: PodSourceOptions, signal: AbortSignal): Promise<PodReading> {
  const chosen = options.source === "auto" ? automatic(options) : options.source;
  if (typeof chosen !== "string") return chosen;
  switch (chosen) {
    case "none":
      return { kind: "none", why: "as configured" };
    case "cri":
      return { kind: "ready", source: "cri", pods: [] };
    case "kubelet-dir":
      return await reading("kubelet-dir", () => directoryPods(options.rootDirectory));
    case "kubelet-api":
      return await reading("kubelet-api", () => listedPods(options, signal));
  }
}

/**
 * The kubelet's list and its pod directories: a kubelet that has not heard from its API server lists few pods but has
 * all of their directories. So a pod is absent only if both lack it.
 */
async function listedPods(
  { kubelet, rootDirectory }: PodSourceOptions,
  signal: AbortSignal,
): Promise<readonly PodRecordSeen[]> {
  const [listed, directories] = await Promise.all([
    // Loaded on demand, with HTTP and TLS, which other sources do not need.
    import("../http.ts").then(({ kubeletPods }) => kubeletPods(kubelet, signal)),
    directoryPods(rootDirectory),
  ]);
  const uids = new Set(listed.map(({ uid }) => uid));
  return [...listed, ...directories.filter(({ uid }) => !uids.has(uid))];
}

/** The kubelet's directory if there is one; the runtime only if nothing at all suggests a kubelet. */
function automatic(options: PodSourceOptions): "kubelet-dir" | "cri" | PodReading {
  const { rootDirectory, nodeRoot = "/" } = options;
  // Without a kubelet the root directory is that of the node, and its /pods could belong to anything.
  const ofKubelet = rootDirectory !== "/";
  if (ofKubelet && mayExist(join(rootDirectory, "pods"))) return "kubelet-dir";
  const signs = ofKubelet ? kubeletSigns(nodeRoot, rootDirectory) : kubeletSigns(nodeRoot);
  const [sign = options.hadKubelet === true ? "an earlier check" : undefined] = signs;
  if (sign === undefined) return "cri";
  const why = `${sign} suggests a kubelet, but ${join(rootDirectory, "pods")} does not exist; set --pod-source`;
  return { kind: "none", why };
}

async function reading(
  source: PodSource,
  read: () => Promise<readonly PodRecordSeen[]>,
): Promise<PodReading> {
  try {
    return { kind: "ready", source, pods: await read() };
  } catch (error) {
    return { kind: "failed", source, message: messageOf(error) };
  }
}

/**
 * Each entry of `ROOT/pods` is named by a UID. Any plain name counts as one, because an extra name only keeps
 * something, and a missing one would delete it; names that cannot be a UID (`lost+found`, a hidden file) do not count.
 */
async function directoryPods(rootDirectory: string): Promise<readonly PodRecordSeen[]> {
  const path = join(rootDirectory, "pods");
  const names = await readdir(path).catch((error: unknown) => {
    throw hostError(
      "read",
      error,
      (why) =>
        `cannot read the pods of the kubelet from ${path}: ${why}; set --root-dir to the kubelet's directory, or choose another --pod-source`,
    );
  });
  return names.filter(isPlainName).map((name) => ({
    uid: podUid(name),
    origin: "directory",
    finished: false,
    evicted: false,
    images: [],
  }));
}

const isPlainName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name);

/** Pods read at once: 500 pods with 3 containers each take 10 ms. */
const CONCURRENCY = 16;

/**
 * The kubelet makes a file in `ROOT/pods/UID/containers/NAME` just before it creates a container: reads its new marks.
 * `root`: the kubelet's; without a kubelet it is "/", whose /pods could belong to anything. Only directories of
 * new marks are read, because nearly all are old.
 */
export async function readContainerMarks(
  root: string,
  ...[pods, isNew]: Parameters<HostReader["containerMarks"]>
): ReturnType<HostReader["containerMarks"]> {
  const directory = join(root, "pods");
  const isReadable = await readdir(directory).then(
    () => root !== "/",
    () => false,
  );
  if (!isReadable) return { marks: [], unreadable: new Set(pods) };
  const marks: ContainerMark[] = [];
  const unreadable = new Set<PodUid>();
  await mapBounded(pods, CONCURRENCY, async (uid) => {
    // A UID comes from a label, which must not lead to another directory.
    if (!isPlainName(uid)) return;
    try {
      marks.push(...(await marksOf(join(directory, uid, "containers"), uid, isNew)));
    } catch {
      unreadable.add(uid);
    }
  });
  return { marks, unreadable };
}

async function marksOf(
  directory: string,
  uid: PodUid,
  isNew: (mark: ContainerMark) => boolean,
): Promise<readonly ContainerMark[]> {
  const marks: ContainerMark[] = [];
  for (const name of await orAbsent(readdir(directory), [])) {
    const path = join(directory, name);
    const found = await orAbsent(stat(path, { bigint: true }), null);
    if (found === null) continue;
    const mark = { podUid: uid, name, at: instant(found.mtimeNs) };
    if (isNew(mark) && (await holdsFile(path))) marks.push(mark);
  }
  return marks;
}

const holdsFile = async (directory: string): Promise<boolean> =>
  (await orAbsent(readdir(directory, { withFileTypes: true }), [])).some((entry) => entry.isFile());

/** A missing path is not a mark; any other failure leaves the pod's marks unknown. */
const orAbsent = <T>(read: Promise<T>, absent: T): Promise<T> =>
  read.catch((thrown: unknown) => {
    if (isAbsent(thrown)) return absent;
    throw thrown;
  });

/**
 * Paths that show that a kubelet is or was on this node; empty if there are none. An inaccessible path counts as a
 * sign. `root` is the node's root directory, `rootDirectory` the kubelet's.
 */
export function kubeletSigns(root = "/", rootDirectory = "/var/lib/kubelet"): readonly string[] {
  const files = [...units(), ...configurationFiles, ...environmentFiles, ...credentials];
  return [...new Set([...files, ...rootDirectories, rootDirectory])].filter((path) =>
    mayExist(join(root, path)),
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

/** Where a kubelet's configuration is if no flag names it; the first that can be read counts. */
export const configurationFiles = [
  "/var/lib/kubelet/config.yaml",
  "/etc/kubernetes/kubelet/config.json",
  "/etc/kubernetes/kubelet/kubelet-config.json",
  "/etc/kubernetes/kubelet-config.yaml",
  "/var/lib/k0s/kubelet-config.yaml",
] as const;

/** A later file's flag wins. */
export const environmentFiles = [
  "/var/lib/kubelet/kubeadm-flags.env",
  "/etc/default/kubelet",
  "/etc/sysconfig/kubelet",
] as const;

const credentials = ["/var/lib/kubelet/kubeconfig", "/etc/kubernetes/kubelet.conf"] as const;

function units(): readonly string[] {
  return [
    ...unitDirectories.flatMap((directory) => unitNames.map((name) => `${directory}/${name}`)),
    ...serviceScripts.map((name) => `/etc/init.d/${name}`),
  ];
}
