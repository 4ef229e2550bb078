/**
 * The kubelet beside crigc: its pods and the marks of their containers, and what shows that there is one; policy judges what
 * they mean.
 */

import { readFileSync, statSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { distributions } from "../../cri/runtimes.ts";
import { type PodUid, podUid } from "../../model/ids.ts";
import type { PodDirectory, PodReading, PodSource } from "../../model/snapshot.ts";
import { type Instant, instant } from "../../model/time.ts";
import { mapBounded } from "../../model/values.ts";
import { hostError, isAbsent, mayExist, namesIn, procText, reasonOf } from "../files.ts";

export interface PodSourceOptions {
  readonly source: "auto" | PodSource | "none";
  /** `--root-dir`: the kubelet's; "/" on a node without one. */
  readonly rootDirectory: string;
  /** Where to look for signs of a kubelet; default "/". */
  readonly nodeRoot?: string;
}

/**
 * `auto`: the kubelet's directory if there is one; the runtime only if nothing suggests a kubelet. Never rejects: a failing
 * source is a reading of kind `failed`. Decided each time, because kubelets come and go.
 */
export async function readPods(options: PodSourceOptions): Promise<PodReading> {
  const { source, rootDirectory, nodeRoot } = options;
  if (source === "none") return { kind: "none", why: "as configured" };
  if (source === "kubelet-dir" || (source === "auto" && hasPods(rootDirectory)))
    return directoryPods(rootDirectory);
  const sign = source === "auto" ? kubeletSign(rootDirectory, nodeRoot) : null;
  if (sign === null) return { kind: "ready", source: "cri", pods: [] };
  const why = `${sign} suggests a kubelet, but ${podsOf(rootDirectory)} does not exist; set --root-dir or --pod-source`;
  return { kind: "none", why };
}

const podsOf = (rootDirectory: string): string => join(rootDirectory, "pods");

/** Without a kubelet the root directory is that of the node, and its /pods could belong to anything. */
const hasPods = (rootDirectory: string): boolean =>
  rootDirectory !== "/" && mayExist(podsOf(rootDirectory));

const usualRoots = [...new Set(distributions.map(({ kubeletRoot }) => kubeletRoot))];

/** `configured`: `--root-dir`, else the first of the usual ones that exists, else `/`. */
export const rootDirectoryOf = (
  configured: string | null,
  usual: readonly string[] = usualRoots,
): string => configured ?? usual.find(mayExist) ?? "/";

/** Whether crigc runs beside a kubelet, for its default thresholds. */
export const isBesideKubelet = (configured: string | null): boolean =>
  hasPods(rootDirectoryOf(configured));

/**
 * Each entry of `ROOT/pods` is named by a UID. Any plain name counts as one, because an extra name only keeps
 * something, and a missing one would delete it; names that cannot be a UID (`lost+found`, a hidden file) do not count.
 */
async function directoryPods(rootDirectory: string): Promise<PodReading> {
  const path = podsOf(rootDirectory);
  const source = "kubelet-dir";
  try {
    const names = await readdir(path);
    return { kind: "ready", source, pods: names.filter(isPlainName).map(podUid) };
  } catch (error) {
    const what = `cannot read the pods of the kubelet from ${path}`;
    const advice = "; set --root-dir to the kubelet's directory, or choose another --pod-source";
    return { kind: "failed", source, message: hostError("read", error, what, advice).message };
  }
}

/** Whether the kubelet still has a directory of this pod. */
export const hasDirectory = (rootDirectory: string, uid: PodUid): boolean =>
  isPlainName(uid) && mayExist(join(podsOf(rootDirectory), uid));

const isPlainName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name);

/** Pods read at once: 500 pods with 3 containers each take 10 ms. */
const CONCURRENCY = 16;

/**
 * The kubelet's directories of pods that changed since then. It makes a file in `ROOT/pods/UID/containers/NAME` just before
 * it creates a container; the time of that directory tells whether any of its files is new. `null` without a kubelet, whose
 * root is "/": /pods could belong to anything. Throws `HostError`: a directory that cannot be read may hide a pod.
 */
export async function readPodDirectories(
  root: string,
  since: Instant,
): Promise<readonly PodDirectory[] | null> {
  const directory = join(root, "pods");
  const names = root === "/" ? null : await orAbsent(directory, readdir(directory), null);
  if (names === null) return null;
  const found = await mapBounded(names.filter(isPlainName), CONCURRENCY, async (name) => {
    const path = join(directory, name);
    const own = await orAbsent(path, stat(path, { bigint: true }), null);
    if (own === null) return [];
    const files = await filesSince(join(path, "containers"), since);
    const bornAt = instant(own.birthtimeNs);
    return files.length > 0 || bornAt >= since ? [{ uid: podUid(name), bornAt, files }] : [];
  });
  return found.flat();
}

async function filesSince(directory: string, since: Instant): Promise<PodDirectory["files"]> {
  const containers = await orAbsent(directory, readdir(directory), []);
  const found = containers.map(async (container) => {
    const path = join(directory, container);
    const own = await orAbsent(path, stat(path, { bigint: true }), null);
    if (own === null || own.mtimeNs < since) return [];
    const names = await orAbsent(path, readdir(path), []);
    const files = names.map(async (name) => {
      const file = join(path, name);
      const its = await orAbsent(file, stat(file, { bigint: true }), null);
      return its?.isFile() === true ? [{ container, bornAt: instant(its.birthtimeNs) }] : [];
    });
    return (await Promise.all(files)).flat();
  });
  return (await Promise.all(found)).flat();
}

const orAbsent = <T, Absent>(path: string, read: Promise<T>, absent: Absent): Promise<T | Absent> =>
  read.catch((thrown: unknown) => {
    if (isAbsent(thrown)) return absent;
    throw hostError("read", thrown, `cannot read ${path}`);
  });

const programs = new Set(distributions.flatMap((distribution) => distribution.programs));

/**
 * What suggests a kubelet on this node: its process, or a root directory, also an inaccessible one; `null`: nothing does.
 * `nodeRoot` is the node's root directory, `rootDirectory` the kubelet's.
 */
export function kubeletSign(rootDirectory: string, nodeRoot = "/"): string | null {
  const proc = join(nodeRoot, "proc");
  for (const pid of namesIn(proc).filter((name) => /^\d+$/.test(name))) {
    const program = procText(join(proc, pid, "comm")).trim();
    if (programs.has(program)) return `process ${pid} (${program})`;
  }
  const roots = rootDirectory === "/" ? usualRoots : [...usualRoots, rootDirectory];
  return roots.find((path) => mayExist(join(nodeRoot, path))) ?? null;
}

const FILE_BYTES_MAX = 1024 * 1024;

export interface KubeletFact {
  /** What suggests a kubelet on this node; `null`: nothing does. */
  readonly sign: string | null;
  /** The first configuration file that exists; its text is `null`, with the reason, if it cannot be read. */
  readonly file: {
    readonly path: string;
    readonly text: string | null;
    readonly why: string;
  } | null;
}

export function kubeletFact(rootDirectory: string): KubeletFact {
  const file = kubeletFile();
  return { sign: kubeletSign(rootDirectory) ?? file?.path ?? null, file };
}

function kubeletFile(): KubeletFact["file"] {
  for (const path of distributions.flatMap(({ kubeletConfigs }) => kubeletConfigs)) {
    try {
      if (statSync(path).size > FILE_BYTES_MAX) throw new Error("it is too large");
      return { path, text: readFileSync(path, "utf8"), why: "" };
    } catch (error) {
      if (!isAbsent(error)) return { path, text: null, why: reasonOf(error) };
    }
  }
  return null;
}
