// The settings of the node's kubelet, from its flags, its configuration file and the drop-ins over it.

import type { KubeletSetting } from "../../model/ports.ts";
import { isMap } from "../../model/values.ts";
import { Files, kubeletFlags, type KubeletProcess, kubeletProcesses } from "./flags.ts";

export interface Kubelet {
  readonly processes: readonly KubeletProcess[];
  /** It is running, or is configured here. */
  readonly isHere: boolean;
  /** Explicit settings only; the rest are the kubelet's defaults. Flags win over drop-ins, and those over the file. */
  readonly settings: readonly KubeletSetting[];
  /** `--root-dir`; `null` if not given, so it is `/var/lib/kubelet`. */
  readonly rootDirectory: string | null;
  /** `staticPodPath` or `--pod-manifest-path`; `null` if unknown. */
  readonly staticPodPath: string | null;
  /** Files that exist but cannot be read or parsed. */
  readonly problems: readonly string[];
}

export interface KubeletPlaces {
  /** Default `/proc`. */
  readonly proc?: string;
  /** The node's root directory, default `/`. */
  readonly root?: string;
}

/** Read each time, because kubelets come, go and change. */
export function readKubelet({ proc = "/proc", root = "/" }: KubeletPlaces = {}): Kubelet {
  const processes = kubeletProcesses(proc);
  const { flags, problems } = kubeletFlags(processes, root);
  const files = new Files(root);
  const named = flags.get("config")?.text ?? null;
  const written = merged(files, {
    base: named === null ? configurations : [named],
    dropIns: flags.get("config-dir")?.text ?? null,
  });
  if (named !== null && written.base === null && files.problems.length === 0)
    files.problems.push(`the kubelet's configuration ${named} does not exist`);
  const given = (field: string, flag: string): KubeletSetting | null => {
    const own = flags.get(flag);
    if (own !== undefined) return { field, ...own };
    const text = textOf(written.values[field], field === "evictionSoftGracePeriod" ? "=" : "<");
    return text === null ? null : { field, text, source: written.sources.get(field) ?? "" };
  };
  return {
    processes,
    isHere: processes.length > 0 || written.base !== null || flags.size > 0,
    settings: flagOfField.flatMap(([field, flag]) => given(field, flag) ?? []),
    rootDirectory: pathOf(given("rootDirectory", "root-dir")),
    staticPodPath: pathOf(given("staticPodPath", "pod-manifest-path")),
    problems: [...problems, ...files.problems],
  };
}

const configurations = [
  "/var/lib/kubelet/config.yaml",
  "/etc/kubernetes/kubelet/config.json",
  "/etc/kubernetes/kubelet/kubelet-config.json",
  "/etc/kubernetes/kubelet-config.yaml",
  "/var/lib/k0s/kubelet-config.yaml",
] as const;

const flagOfField: readonly (readonly [string, string])[] = [
  ["imageGCHighThresholdPercent", "image-gc-high-threshold"],
  ["imageGCLowThresholdPercent", "image-gc-low-threshold"],
  ["imageMinimumGCAge", "minimum-image-ttl-duration"],
  ["imageMaximumGCAge", "image-maximum-gc-age"],
  ["evictionHard", "eviction-hard"],
  ["evictionSoft", "eviction-soft"],
  ["evictionSoftGracePeriod", "eviction-soft-grace-period"],
  ["containerRuntimeEndpoint", "container-runtime-endpoint"],
];

/** A relative path depends on where the kubelet was started, which is unknown. */
const pathOf = (setting: KubeletSetting | null): string | null =>
  setting?.text.startsWith("/") === true ? setting.text : null;

interface Written {
  readonly base: string | null;
  readonly values: Readonly<Record<string, unknown>>;
  /** The last file that set a field. */
  readonly sources: ReadonlyMap<string, string>;
}

/** The kubelet's defaults, which a drop-in patches if the file has no `evictionHard`. */
const defaultEvictionHard = {
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
} as const;

/** The first readable file, and the drop-ins as JSON merge patches over it, in the order of their paths. */
function merged(
  files: Files,
  { base, dropIns }: { readonly base: readonly string[]; readonly dropIns: string | null },
): Written {
  const found = firstDocument(files, base);
  const path = found?.path ?? null;
  const first = found?.values ?? {};
  const patches = dropIns === null ? [] : patchesBelow(files, dropIns);
  let values: Readonly<Record<string, unknown>> = first;
  const sources = new Map(Object.keys(first).map((field) => [field, path ?? ""]));
  if (patches.length > 0 && !isMap(values["evictionHard"]))
    values = { ...values, evictionHard: defaultEvictionHard };
  for (const { source, patch } of patches) {
    values = patched(values, patch);
    for (const field of Object.keys(patch)) sources.set(field, source);
  }
  const hard = values["evictionHard"];
  if (values["mergeDefaultEvictionSettings"] === true && isMap(hard))
    values = { ...values, evictionHard: { ...defaultEvictionHard, ...hard } };
  return { base: path, values, sources };
}

function firstDocument(files: Files, paths: readonly string[]) {
  for (const path of paths) {
    const values = files.document(path);
    if (values !== null) return { path, values };
  }
  return null;
}

interface Patch {
  readonly source: string;
  readonly patch: Readonly<Record<string, unknown>>;
}

/** Maximum depth of nested directories, which the kubelet reads too. */
const DEPTH_MAX = 8;

function patchesBelow(files: Files, directory: string, depth = 0): readonly Patch[] {
  if (depth > DEPTH_MAX) return [];
  return files.names(directory).flatMap((name): readonly Patch[] => {
    const source = `${directory}/${name}`;
    if (files.isDirectory(source)) return patchesBelow(files, source, depth + 1);
    const patch = name.endsWith(".conf") ? files.document(source) : null;
    return patch === null ? [] : [{ source, patch }];
  });
}

/** JSON merge patch: null removes, maps merge, everything else replaces. */
function patched(
  target: Readonly<Record<string, unknown>>,
  patch: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const kept = Object.entries(target).filter(([key]) => patch[key] !== null);
  const set = Object.entries(patch)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => {
      const before = Object.hasOwn(target, key) ? target[key] : undefined;
      return [key, isMap(value) ? patched(isMap(before) ? before : {}, value) : value] as const;
    });
  return Object.fromEntries([...kept, ...set]);
}

/** Maps of signals in the syntax of their flags. */
function textOf(value: unknown, between: "<" | "="): string | null {
  if (typeof value === "string" || typeof value === "number") return String(value);
  if (!isMap(value)) return null;
  return Object.entries(value)
    .map(([signal, amount]) => `${signal}${between}${String(amount)}`)
    .join(",");
}

export interface NodeKubelet {
  /** As last found; `null`: none on this node. The same object until something of it changes. */
  readonly found: () => Kubelet | null;
  /** Looks again, which takes milliseconds. */
  readonly look: () => Kubelet | null;
}

export function nodeKubelet(read: () => Kubelet = readKubelet): NodeKubelet {
  let known: Kubelet | null | undefined;
  const look = (): Kubelet | null => {
    const found = read();
    if (known === undefined || known === null) known = found.isHere ? found : null;
    else if (isReadable(found, known) && !Bun.deepEquals(found, known)) known = found;
    return known;
  };
  return { found: () => (known === undefined ? look() : known), look };
}

/** A kubelet that restarts, or whose file is unreadable for now, still has the settings that were found before. */
const isReadable = (found: Kubelet, known: Kubelet): boolean =>
  found.isHere &&
  (found.processes.length > 0 || known.processes.length === 0) &&
  found.problems.every((problem) => known.problems.includes(problem));
