/** Finds image names, log directories and layers in the JSON of verbose responses, whose shape every runtime invents for itself. */

import { type ChainId, chainId } from "../model/ids.ts";
import type { ImageOrigin } from "../model/ledger.ts";
import { fromRfc3339 } from "../model/time.ts";
import { isMap, parsedJson } from "../model/values.ts";
import { digestOf } from "./entries.ts";

type Info = Readonly<Record<string, string>>;

const SANDBOX_IMAGE_KEY = /^(?:sandbox|pause|infra|podinfracontainer)image$/;

/**
 * Under any key that names it, in any spelling: containerd 1.x and CRI-O name the sandbox image in "config"; containerd 2
 * and cri-dockerd name none.
 */
export function sandboxImagesOf(info: Info): readonly string[] {
  const found = new Set<string>();
  const collect = (key: string, value: unknown): unknown => {
    const isNamed = SANDBOX_IMAGE_KEY.test(key.toLowerCase().replaceAll(/[_-]/g, ""));
    if (isNamed && typeof value === "string" && value !== "") found.add(value);
    return value;
  };
  for (const text of Object.values(info)) parsedJson(text, collect);
  return [...found];
}

/**
 * `image` at the top level of a sandbox's "info" on containerd and CRI-O. CRI-O without pause containers omits it: the
 * name is then only in an annotation of the sandbox's runtime specification.
 */
export function imageOfSandbox(info: Info): string | null {
  const document = parsedJson(info["info"] ?? "");
  const names = [
    at(document, ["image"]),
    at(document, ["runtimeSpec", "annotations", "io.kubernetes.cri-o.ImageName"]),
  ];
  return names.find((name): name is string => typeof name === "string" && name !== "") ?? null;
}

/**
 * Where the containers of a sandbox log to: `config.log_directory` on containerd; on CRI-O the directory of the
 * sandbox's own log, from an annotation. "" if the runtime does not say.
 */
export function logDirectoryOfSandbox(info: Info): string {
  const document = parsedJson(info["info"] ?? "");
  const directory = at(document, ["config", "log_directory"]);
  if (typeof directory === "string" && directory !== "") return directory;
  const log = at(document, ["runtimeSpec", "annotations", "io.kubernetes.cri-o.LogPath"]);
  const slash = typeof log === "string" ? log.lastIndexOf("/") : -1;
  return typeof log === "string" && slash > 0 ? log.slice(0, slash) : "";
}

/** More than any real image has (overlayfs mounts at most 500); a document that names more is not trusted. */
const LAYERS_MAX = 1024;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads `imageSpec` in `info["info"]`, as containerd and CRI-O write it. `null` if it names no layers: an OCI artifact,
 * a runtime without this document, or a diff ID that is not a SHA-256 digest.
 */
export function imageOrigin(info: Info): ImageOrigin {
  const document = parsedJson(info["info"] ?? "");
  const created = at(document, ["imageSpec", "created"]);
  return {
    chain: chainOf(at(document, ["imageSpec", "rootfs", "diff_ids"])),
    builtAt: typeof created === "string" ? fromRfc3339(created) : null,
  };
}

/**
 * The first layer's chain ID is its diff ID; each further one is the digest of the previous chain ID and its own diff
 * ID.
 */
function chainOf(diffIds: unknown): readonly ChainId[] | null {
  if (!Array.isArray(diffIds) || diffIds.length === 0 || diffIds.length > LAYERS_MAX) return null;
  const chain: ChainId[] = [];
  let last = "";
  for (const diff of diffIds as readonly unknown[]) {
    if (typeof diff !== "string" || !DIGEST.test(diff)) return null;
    last = last === "" ? diff : `sha256:${digestOf(`${last} ${diff}`)}`;
    chain.push(chainId(last));
  }
  return chain;
}

const at = (document: unknown, keys: readonly string[]): unknown =>
  keys.reduce((value, key) => (isMap(value) ? value[key] : undefined), document);
