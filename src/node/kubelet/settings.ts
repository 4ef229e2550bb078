// The settings of the node's kubelet, from its flags, its configuration file and the drop-ins over it.

import type { KubeletSetting } from "../../model/ports.ts";
import { isMap } from "../../model/values.ts";
import { kubeletFlags, type KubeletProcess, kubeletProcesses, NodeFiles } from "./flags.ts";
import { configurationFiles } from "./pods.ts";

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

const flagOfField = {
  imageGCHighThresholdPercent: "image-gc-high-threshold",
  imageGCLowThresholdPercent: "image-gc-low-threshold",
  imageMinimumGCAge: "minimum-image-ttl-duration",
  imageMaximumGCAge: "image-maximum-gc-age",
  evictionHard: "eviction-hard",
  evictionSoft: "eviction-soft",
  evictionSoftGracePeriod: "eviction-soft-grace-period",
  containerRuntimeEndpoint: "container-runtime-endpoint",
} as const;

/** Read each time, because kubelets come, go and change. */
export function readKubelet({ proc = "/proc", root = "/" }: KubeletPlaces = {}): Kubelet {
  const processes = kubeletProcesses(proc);
  const files = new NodeFiles(root);
  const flags = kubeletFlags(processes[0], files);
  const problemsOfFlags = files.problems.length;
  const named = flags.get("config")?.text;
  const written = merged(files, {
    base: named === undefined ? configurationFiles : [named],
    dropIns: flags.get("config-dir")?.text ?? null,
  });
  if (named !== undefined && written.base === null && files.problems.length === problemsOfFlags)
    files.problems.push(`the kubelet's configuration ${named} does not exist`);
  const given = (field: string, flag: string): KubeletSetting | null => {
    const own = flags.get(flag);
    if (own !== undefined) return { field, ...own };
    const text = textOf(written.values[field], field === "evictionSoftGracePeriod" ? "=" : "<");
    return text === null ? null : { field, text, source: written.sources.get(field) ?? "" };
  };
  /** A relative path depends on where the kubelet was started, which is unknown. */
  const pathOf = (field: string, flag: string): string | null => {
    const text = given(field, flag)?.text ?? "";
    return text.startsWith("/") ? text : null;
  };
  return {
    processes,
    isHere: processes.length > 0 || written.base !== null || flags.size > 0,
    settings: Object.entries(flagOfField).flatMap(([field, flag]) => given(field, flag) ?? []),
    rootDirectory: pathOf("rootDirectory", "root-dir"),
    staticPodPath: pathOf("staticPodPath", "pod-manifest-path"),
    problems: files.problems,
  };
}

type Values = Readonly<Record<string, unknown>>;

/** The kubelet's defaults, which a drop-in patches if the file has no `evictionHard`. */
const defaultEvictionHard = {
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
} as const;

interface Written {
  readonly base: string | null;
  readonly values: Values;
  /** The last file that set a field. */
  readonly sources: ReadonlyMap<string, string>;
}

/** The first readable file, and the drop-ins as JSON merge patches over it, in the order of their paths. */
function merged(
  files: NodeFiles,
  { base, dropIns }: { readonly base: readonly string[]; readonly dropIns: string | null },
): Written {
  const sources = new Map<string, string>();
  let values: Values = {};
  let found: string | null = null;
  for (const path of base) {
    const document = files.document(path);
    if (document === null) continue;
    [values, found] = [document, path];
    for (const field of Object.keys(document)) sources.set(field, path);
    break;
  }
  const patches = dropIns === null ? [] : patchesBelow(files, dropIns);
  if (patches.length > 0 && !isMap(values["evictionHard"]))
    values = { ...values, evictionHard: defaultEvictionHard };
  for (const { source, patch } of patches) {
    values = patched(values, patch);
    for (const field of Object.keys(patch)) sources.set(field, source);
  }
  const hard = values["evictionHard"];
  if (values["mergeDefaultEvictionSettings"] === true && isMap(hard))
    values = { ...values, evictionHard: { ...defaultEvictionHard, ...hard } };
  return { base: found, values, sources };
}

interface Patch {
  readonly source: string;
  readonly patch: Values;
}

/** Maximum depth of nested directories, which the kubelet reads too. */
const DEPTH_MAX = 8;

function patchesBelow(files: NodeFiles, directory: string, depth = 0): readonly Patch[] {
  if (depth > DEPTH_MAX) return [];
  return files.paths(directory).flatMap((source): readonly Patch[] => {
    if (files.isDirectory(source)) return patchesBelow(files, source, depth + 1);
    const patch = source.endsWith(".conf") ? files.document(source) : null;
    return patch === null ? [] : [{ source, patch }];
  });
}

/** JSON merge patch: null removes, maps merge, everything else replaces. */
function patched(target: Values, patch: Values): Values {
  const result = new Map(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    const before = result.get(key);
    if (value === null) result.delete(key);
    else result.set(key, isMap(value) ? patched(isMap(before) ? before : {}, value) : value);
  }
  return Object.fromEntries(result);
}

/** Maps of signals in the syntax of their flags. */
function textOf(value: unknown, between: "<" | "="): string | null {
  if (typeof value === "string" || typeof value === "number") return String(value);
  if (value === undefined || value === null) return null;
  // Of a wrong type: invalid as the text that it is.
  if (!isMap(value)) return JSON.stringify(value);
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
