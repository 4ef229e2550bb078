/** The layers and build date of an image, from the JSON of a verbose status. */
import { type ChainId, chainId } from "../model/ids.ts";
import type { ImageOrigin } from "../model/snapshot.ts";
import { fromRfc3339 } from "../model/time.ts";
import { digestOfText } from "./digest.ts";

/** More than any real image has (overlayfs mounts at most 500); a document that names more is not trusted. */
const LAYERS_MAX = 1024;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads `imageSpec` in `info["info"]`, as containerd and CRI-O write it. `null` if it names no layers: an OCI artifact,
 * a runtime without this document, or a diff ID that is not a SHA-256 digest.
 */
export function imageOrigin(info: Readonly<Record<string, string>>): ImageOrigin {
  const spec = fieldOf(parsed(info["info"] ?? ""), "imageSpec");
  const created = fieldOf(spec, "created");
  return {
    chain: chainOf(fieldOf(fieldOf(spec, "rootfs"), "diff_ids")),
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
    last = last === "" ? diff : `sha256:${digestOfText(`${last} ${diff}`)}`;
    chain.push(chainId(last));
  }
  return chain;
}

function fieldOf(value: unknown, key: string): unknown {
  const found: unknown =
    typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return found;
}

/** Invalid JSON yields nothing. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
