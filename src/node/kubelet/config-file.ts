// What shows a kubelet on this node, and its configuration file, for `doctor`.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { distributions } from "../../cri/runtimes.ts";
import { isAbsent, reasonOf } from "../files.ts";
import { kubeletSigns } from "./pods.ts";

const FILE_BYTES_MAX = 1024 * 1024;

export interface KubeletFact {
  /** What suggests a kubelet on this node. */
  readonly signs: readonly string[];
  /** The first configuration file that exists; its text is `null`, with the reason, if it cannot be read. */
  readonly file: {
    readonly path: string;
    readonly text: string | null;
    readonly why: string;
  } | null;
}

export function kubeletFact(rootDirectory: string, root = "/"): KubeletFact {
  for (const path of distributions.flatMap(({ kubeletConfigs }) => kubeletConfigs)) {
    const signs = [...kubeletSigns(root, rootDirectory), path];
    try {
      if (statSync(join(root, path)).size > FILE_BYTES_MAX) throw new Error("it is too large");
      const text = readFileSync(join(root, path), "utf8");
      return { signs, file: { path, text, why: "" } };
    } catch (error) {
      if (!isAbsent(error)) return { signs, file: { path, text: null, why: reasonOf(error) } };
    }
  }
  return { signs: kubeletSigns(root, rootDirectory), file: null };
}
