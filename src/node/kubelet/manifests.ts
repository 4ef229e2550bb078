// Reads the manifests of static pods as the kubelet does: every file of the directory that is not hidden, whatever its
// extension.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import type { Manifest } from "../../model/snapshot.ts";
import type { EntryName } from "../directory.ts";
import { codeOf, isAbsent, reasonOf } from "../files.ts";
import { podImages } from "./pod-list.ts";

/** The directories of kubeadm, RKE2 and k3s, if the kubelet's own setting is unknown. */
export const MANIFEST_DIRECTORIES = [
  "/etc/kubernetes/manifests",
  "/var/lib/rancher/rke2/agent/pod-manifests",
  "/var/lib/rancher/k3s/agent/pod-manifests",
] as const;

/** The kubelet runs no larger file. */
const BYTES_MAX = 10 * 1024 * 1024;
/** A node has a handful. Of a directory with more, crigc cannot say which images it names. */
const FILES_MAX = 1_000;

/** `paths`: directories, or a file; a missing one has no pods. Never rejects. */
export async function readManifests(paths: readonly string[]): Promise<readonly Manifest[]> {
  return (await Promise.all(paths.map(manifestsAt))).flat();
}

async function manifestsAt(path: string): Promise<readonly Manifest[]> {
  try {
    if (!(await stat(path)).isDirectory()) return await manifestAt(path, path);
    const names = (await readdir(path, { encoding: "buffer" }))
      .filter((name) => !name.toString().startsWith("."))
      .toSorted((one, other) => Buffer.compare(one, other));
    if (names.length > FILES_MAX)
      throw new Error(`it has ${names.length} files; the maximum is ${FILES_MAX}`);
    const found = names.map((name) =>
      manifestAt(join(path, name.toString()), Buffer.concat([Buffer.from(`${path}/`), name])),
    );
    return (await Promise.all(found)).flat();
  } catch (error) {
    return unreadable(path, error);
  }
}

/**
 * `file`: as the kernel names it, which may not be UTF-8. None if it no longer exists, dangles, or is nothing that a
 * kubelet would run.
 */
async function manifestAt(path: string, file: EntryName): Promise<readonly Manifest[]> {
  try {
    const found = await stat(file);
    if (!found.isFile() || found.size > BYTES_MAX) return [];
    return [manifestOf(path, await readFile(file, "utf8"))];
  } catch (error) {
    return unreadable(path, error);
  }
}

const unreadable = (path: string, error: unknown): readonly Manifest[] =>
  isAbsent(error) || codeOf(error) === "ELOOP"
    ? []
    : [{ path, images: [], fault: { kind: "unreadable", message: reasonOf(error) } }];

/** A half-written file, or an editor's copy of one, still names images: they are kept until it is a pod, or removed. */
function manifestOf(path: string, text: string): Manifest {
  let message = "it is not a pod";
  try {
    const value: unknown = Bun.YAML.parse(text);
    const images = (Array.isArray(value) ? value : [value]).flatMap((pod) => podImages(pod));
    if (images.length > 0) return { path, images: [...new Set(images)], fault: null };
  } catch (error) {
    message = reasonOf(error);
  }
  const named = text.matchAll(/\b(?:image|reference)["']?\s*:\s*["']?([^\s"',{}[\]#]+)/g);
  const images = [...named].flatMap(([, image]) => image ?? []);
  return { path, images: [...new Set(images)], fault: { kind: "invalid", message } };
}
