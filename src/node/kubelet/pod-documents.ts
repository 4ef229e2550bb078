// Documents that describe pods: the kubelet's list, complete and well-formed or not at all; and the manifests of static
// pods, as the kubelet reads them: every file of the directory that is not hidden, whatever its extension.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import { HostError } from "../../model/errors.ts";
import { podUid } from "../../model/ids.ts";
import type { Manifest, PodRecordSeen } from "../../model/snapshot.ts";
import { isMap } from "../../model/values.ts";
import type { EntryName } from "../directory.ts";
import { codeOf, isAbsent, reasonOf } from "../files.ts";

/** Parses the body of `/pods`. Throws `HostError` `parse`: half a list would make live pods look deleted. */
export function readPodList(body: string): readonly PodRecordSeen[] {
  const list = fields(parse(body));
  if (list["kind"] !== "PodList") throw noPodList("it is not a PodList");
  // The kubelet writes null if it has no pods.
  const items = list["items"] ?? ("items" in list ? [] : null);
  if (!Array.isArray(items)) throw noPodList("it has no list of items");
  const pods = items.map((item, index) => podFrom(fields(item), index));
  const own = new Set(pods.map(([{ uid }]) => uid));
  // Claims of a pod about another pod that is listed itself are not trusted.
  return pods.flatMap(([pod, ...others]) => [pod, ...others.filter(({ uid }) => !own.has(uid))]);
}

/** A static pod is known by its own UID and by that of its mirror: either may be on a container's label. */
function podFrom(pod: Fields, index: number): readonly [PodRecordSeen, ...PodRecordSeen[]] {
  const { uid, annotations } = fields(pod["metadata"]);
  if (typeof uid !== "string" || uid === "") throw noPodList(`item ${index} has no metadata.uid`);
  const { phase, reason } = fields(pod["status"]);
  const {
    "kubernetes.io/config.source": source,
    "kubernetes.io/config.hash": hash,
    "kubernetes.io/config.mirror": mirror,
  } = fields(annotations);
  const images = podImages(pod);
  const others = [hash, mirror].filter((other) => typeof other === "string");
  return [
    {
      uid: podUid(uid),
      // Where the pod comes from: the API server, a file, or an address that serves manifests.
      origin:
        source === "api" ? "api" : source === "file" || source === "http" ? "static" : "listed",
      finished: phase === "Failed" || phase === "Succeeded",
      evicted: phase === "Failed" && reason === "Evicted",
      images,
    },
    ...[...new Set(others)]
      .filter((other) => other !== "" && other !== uid)
      .map((other): PodRecordSeen => ({
        uid: podUid(other),
        origin: "static",
        finished: false,
        evicted: false,
        images,
      })),
  ];
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw noPodList("it is not JSON", error);
  }
}

const noPodList = (why: string, cause?: unknown): HostError =>
  new HostError("parse", `invalid response from the kubelet: ${why}`, { cause });

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

/** Images in a pod's specification: of init, main and debug containers, and of image volumes. */
function podImages(pod: unknown): readonly string[] {
  const spec = fields(fields(pod)["spec"]);
  const containers = ["initContainers", "containers", "ephemeralContainers"]
    .flatMap((key) => list(spec[key]))
    .map((container) => fields(container)["image"]);
  const volumes = list(spec["volumes"]).map(
    (volume) => fields(fields(volume)["image"])["reference"],
  );
  const names = [...containers, ...volumes].filter((name) => typeof name === "string");
  return [...new Set(names)].filter((name) => name !== "");
}

type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields => (isMap(value) ? value : {});

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
