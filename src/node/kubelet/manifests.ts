// Reads the manifests of static pods as the kubelet does: every file of the directory that is not hidden, whatever its
// extension.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import type { Manifest } from "../../model/snapshot.ts";
import type { EntryName } from "../directory.ts";
import { codeOf, reasonOf } from "../files.ts";
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
  const found = await Promise.all(paths.map(filesAt));
  const read = await Promise.all(found.flat().map(manifestAt));
  return read.filter((manifest) => manifest !== null);
}

/** `file`: as the kernel names it, which may not be UTF-8. */
type Found = { readonly path: string; readonly file: EntryName; readonly fault?: string };

async function filesAt(path: string): Promise<readonly Found[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [{ path, file: path }];
    const names = (await readdir(path, { encoding: "buffer" })).filter(
      (name) => !name.toString().startsWith("."),
    );
    if (names.length > FILES_MAX)
      return [
        { path, file: path, fault: `it has ${names.length} files; the maximum is ${FILES_MAX}` },
      ];
    return names
      .toSorted((one, other) => Buffer.compare(one, other))
      .map((name) => ({
        path: join(path, name.toString()),
        file: Buffer.concat([Buffer.from(`${path}/`), name]),
      }));
  } catch (error) {
    return isAbsent(error) ? [] : [{ path, file: path, fault: reasonOf(error) }];
  }
}

/** `null` if it no longer exists, dangles, or is nothing that a kubelet would run. */
async function manifestAt({ path, file, fault }: Found): Promise<Manifest | null> {
  if (fault !== undefined) return unreadable(path, fault);
  try {
    const found = await stat(file);
    if (!found.isFile() || found.size > BYTES_MAX) return null;
    return manifestOf(path, await readFile(file, "utf8"));
  } catch (error) {
    return isAbsent(error) ? null : unreadable(path, reasonOf(error));
  }
}

const isAbsent = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error));

const unreadable = (path: string, message: string): Manifest => ({
  path,
  images: [],
  fault: { kind: "unreadable", message },
});

/** A half-written file, or an editor's copy of one, still names images: they are kept until it is a pod, or removed. */
function manifestOf(path: string, text: string): Manifest {
  try {
    const value: unknown = Bun.YAML.parse(text);
    const images = (Array.isArray(value) ? value : [value]).flatMap((pod) => podImages(pod));
    if (images.length > 0) return { path, images: [...new Set(images)], fault: null };
  } catch (error) {
    return invalid(path, text, reasonOf(error));
  }
  return invalid(path, text, "it is not a pod");
}

const invalid = (path: string, text: string, message: string): Manifest => ({
  path,
  images: [
    ...new Set(
      [...text.matchAll(/\b(?:image|reference)["']?\s*:\s*["']?([^\s"',{}[\]#]+)/g)].flatMap(
        ([, image]) => image ?? [],
      ),
    ),
  ],
  fault: { kind: "invalid", message },
});
