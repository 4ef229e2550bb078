// What the kubelet on this machine collects at: its configuration file and its flags, as they are written, for comparison with ours.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { codeOf, reasonOf } from "./errno.ts";
import type { KubeletProcess } from "./kubelet-process.ts";

export interface KubeletSetting {
  /** The name of the configuration's field: `imageGCHighThresholdPercent`. */
  readonly field: string;
  /** As written; `evictionHard` as the flag spells it. */
  readonly text: string;
  /** The file, or the flag. */
  readonly source: string;
}

export interface KubeletSettings {
  /** Only what is written somewhere; the rest is the kubelet's default. A flag wins over the file. */
  readonly settings: readonly KubeletSetting[];
  /** Files that are there and cannot be read or understood. */
  readonly problems: readonly string[];
}

const configurations = [
  "/var/lib/kubelet/config.yaml",
  "/etc/kubernetes/kubelet/config.json",
  "/etc/kubernetes/kubelet/kubelet-config.json",
  "/etc/kubernetes/kubelet-config.yaml",
  "/var/lib/k0s/kubelet-config.yaml",
] as const;

const flagByField: ReadonlyMap<string, string> = new Map([
  ["imageGCHighThresholdPercent", "image-gc-high-threshold"],
  ["imageGCLowThresholdPercent", "image-gc-low-threshold"],
  ["imageMinimumGCAge", "minimum-image-ttl-duration"],
  ["imageMaximumGCAge", "image-maximum-gc-age"],
  ["evictionHard", "eviction-hard"],
  ["evictionSoft", "eviction-soft"],
  ["evictionSoftGracePeriod", "eviction-soft-grace-period"],
  ["containerRuntimeEndpoint", "container-runtime-endpoint"],
]);

const fileBytesMax = 1024 * 1024;

/** The file is the one that the running kubelet names, else the first well-known one that is there. */
export function kubeletSettings(running: readonly KubeletProcess[], root = "/"): KubeletSettings {
  const flags = running[0]?.flags ?? new Map<string, string>();
  const named = flags.get("config");
  const file = readFirst(named === undefined ? configurations : [named], root);
  const settings = [...flagByField].flatMap(([field, flag]): readonly KubeletSetting[] => {
    const given = flags.get(flag);
    if (given !== undefined) return [{ field, text: given, source: `--${flag}` }];
    const text = textOf(file.values[field], field === "evictionSoftGracePeriod" ? "=" : "<");
    return text === null ? [] : [{ field, text, source: file.path }];
  });
  return { settings, problems: file.problems };
}

interface File {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly problems: readonly string[];
}

function readFirst(paths: readonly string[], root: string): File {
  const problems: string[] = [];
  for (const path of paths) {
    try {
      const full = join(root, path);
      if (statSync(full).size > fileBytesMax) throw new Error("it is too large");
      const value: unknown = Bun.YAML.parse(readFileSync(full, "utf8"));
      if (isRecord(value)) return { path, values: value, problems };
      throw new Error("it is no configuration");
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) continue;
      problems.push(`reading the kubelet's configuration ${path} failed: ${reasonOf(error)}`);
    }
  }
  return { path: "", values: {}, problems };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** Maps of signals as their flags spell them. */
function textOf(value: unknown, between: "<" | "="): string | null {
  if (typeof value === "string" || typeof value === "number") return String(value);
  if (!isRecord(value)) return null;
  return Object.entries(value)
    .map(([signal, amount]) => `${signal}${between}${String(amount)}`)
    .join(",");
}
