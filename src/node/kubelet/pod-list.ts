// Reads the kubelet's list of pods: complete and well-formed, or not at all.

import { HostError } from "../../model/errors.ts";
import { podUid } from "../../model/ids.ts";
import type { PodRecordSeen } from "../../model/snapshot.ts";
import { isMap } from "../../model/values.ts";

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

/** Images in a pod's specification: of init, main and debug containers, and of image volumes. */
export function podImages(pod: unknown): readonly string[] {
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

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw noPodList("it is not JSON", error);
  }
}

const noPodList = (why: string, cause?: unknown): HostError =>
  new HostError("parse", `invalid response from the kubelet: ${why}`, { cause });
