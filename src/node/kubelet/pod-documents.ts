// Documents that describe pods: the kubelet's list, complete and well-formed or not at all; and the manifests of static
// pods, as the kubelet reads them: every file of the directory that is not hidden, whatever its extension.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import * as v from "valibot";

import { HostError } from "../../model/errors.ts";
import { podUid } from "../../model/ids.ts";
import type { Manifest, PodRecordSeen } from "../../model/snapshot.ts";
import type { EntryName } from "../directory.ts";
import { codeOf, isAbsent, reasonOf } from "../files.ts";

const TEXT = v.nullish(v.string(), "");
const listOf = <Item extends v.GenericSchema>(item: Item) => v.nullish(v.array(item), []);
const CONTAINERS = listOf(v.object({ image: TEXT }));

const SPEC = v.object({
  initContainers: CONTAINERS,
  containers: CONTAINERS,
  ephemeralContainers: CONTAINERS,
  volumes: listOf(v.object({ image: v.nullish(v.object({ reference: TEXT })) })),
});

const POD = v.object({
  metadata: v.object({
    uid: v.pipe(v.string(), v.minLength(1)),
    annotations: v.nullish(v.record(v.string(), v.string()), {}),
  }),
  spec: v.nullish(SPEC, {}),
  status: v.nullish(v.object({ phase: TEXT, reason: TEXT }), {}),
});

const POD_LIST = v.pipe(
  v.string(),
  v.parseJson(undefined, "it is not JSON"),
  // The kubelet writes null if it has no pods.
  v.object({ kind: v.literal("PodList"), items: v.nullable(v.array(POD), []) }),
);

/** Parses the body of `/pods`. Throws `HostError` `parse`: half a list would make live pods look deleted. */
export function readPodList(body: string): readonly PodRecordSeen[] {
  const list = v.safeParse(POD_LIST, body, { abortEarly: true });
  if (!list.success) {
    const [issue] = list.issues;
    const why = [v.getDotPath(issue) ?? [], issue.message].flat().join(": ");
    throw new HostError("parse", `invalid response from the kubelet: ${why}`);
  }
  const pods = list.output.items.map(podFrom);
  const own = new Set(pods.map(([{ uid }]) => uid));
  // Claims of a pod about another pod that is listed itself are not trusted.
  return pods.flatMap(([pod, ...others]) => [pod, ...others.filter(({ uid }) => !own.has(uid))]);
}

/** A static pod is known by its own UID and by that of its mirror: either may be on a container's label. */
function podFrom({
  metadata: { uid, annotations },
  spec,
  status: { phase, reason },
}: v.InferOutput<typeof POD>): readonly [PodRecordSeen, ...PodRecordSeen[]] {
  const source = annotations["kubernetes.io/config.source"];
  const others = ["hash", "mirror"].map((it) => annotations[`kubernetes.io/config.${it}`] ?? "");
  const images = imagesOf(spec);
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

const MANIFEST = v.object({ spec: SPEC });

/** A half-written file, or an editor's copy of one, still names images: they are kept until it is a pod, or removed. */
function manifestOf(path: string, text: string): Manifest {
  let message = "it is not a pod";
  const images: string[] = [];
  try {
    const value: unknown = Bun.YAML.parse(text);
    // After a last "---" comes an empty document.
    const documents = (Array.isArray(value) ? value : [value]).filter((it) => it !== null);
    const pods = documents.map((document) => v.safeParse(MANIFEST, document));
    images.push(...pods.flatMap((pod) => (pod.success ? imagesOf(pod.output.spec) : [])));
    if (images.length > 0 && pods.every(({ success }) => success))
      return { path, images: [...new Set(images)], fault: null };
  } catch (error) {
    message = reasonOf(error);
  }
  const named = text.matchAll(/\b(?:image|reference)["']?\s*:\s*["']?([^\s"',{}[\]#]+)/g);
  images.push(...[...named].flatMap(([, image]) => image ?? []));
  return { path, images: [...new Set(images)], fault: { kind: "invalid", message } };
}

/** Of init, main and debug containers, and of image volumes. */
function imagesOf(spec: v.InferOutput<typeof SPEC>): readonly string[] {
  const containers = [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers];
  const names = containers.map(({ image }) => image);
  const references = spec.volumes.map(({ image }) => image?.reference ?? "");
  return [...new Set([...names, ...references])].filter((name) => name !== "");
}
