// What other programs of the node write: the kubelet's pods, hooks of pods.

import fc from "fast-check";

import { graceSecondsOf, handlerPort, readHandler } from "../../../src/gc/stop-pod.ts";
import { HostError } from "../../../src/model/errors.ts";
import { podsIn } from "../../../src/node/kubelet/specs.ts";
import { jsonOf, signs, textOf } from "../inputs.ts";
import { holds, refusedOr, type Target, textTarget } from "../target.ts";

const aPod = {
  metadata: {
    uid: "uid-1",
    name: "web",
    annotations: {
      "kubernetes.io/config.source": "file",
      "kubernetes.io/config.hash": "hash-1",
      "kubernetes.io/config.mirror": "hash-1",
    },
  },
  spec: {
    initContainers: [{ image: "init:1" }],
    containers: [{ image: "app:1" }, { image: "r.example/side@sha256:0" }],
    volumes: [{ image: { reference: "r.example/data:1" } }],
  },
  status: { phase: "Failed", reason: "Evicted" },
};
const podFields = [
  ..."items kind metadata uid annotations spec containers image volumes reference status".split(
    " ",
  ),
  ..."phase reason ephemeralContainers kubernetes.io/config.hash".split(" "),
];
const podLists = [
  { kind: "PodList", apiVersion: "v1", items: [aPod, { ...aPod, metadata: { uid: "uid-2" } }] },
  { kind: "PodList", items: null },
];

const pods = textTarget(
  "kubelet-pods",
  fc.oneof(
    jsonOf(podLists, podFields),
    textOf({
      words: [...podFields, ...signs("{}[]:,")],
      samples: podLists.map((it) => JSON.stringify(it)),
    }),
  ),
  (text) => {
    const read = refusedOr(() => podsIn(text), HostError);
    if (read === null) return;
    const { items } = JSON.parse(text) as { items: { metadata: { uid: string } }[] | null };
    const seen = new Set<string>(read.map(({ uid }) => uid));
    holds(!seen.has(""), "a pod without a UID");
    holds(
      (items ?? []).every(({ metadata }) => seen.has(metadata.uid)),
      "a pod was passed over",
    );
  },
);

const handlers = [
  { exec: { command: ["/bin/sh", "-c", "drain"] } },
  {
    httpGet: {
      path: "/stop",
      port: "http",
      scheme: "HTTPS",
      httpHeaders: [{ name: "A", value: "b" }],
    },
  },
  { httpGet: { host: "10.0.0.1", port: 8080, path: "stop" } },
  { sleep: { seconds: 5 } },
];
const hook = textTarget(
  "pre-stop",
  jsonOf(
    handlers,
    "exec command httpGet path port scheme host httpHeaders sleep seconds".split(" "),
  ),
  (text) => {
    const annotations = {
      "io.kubernetes.container.ports": text,
      "io.kubernetes.pod.terminationGracePeriod": text,
    };
    const grace = graceSecondsOf(annotations);
    holds(Number.isInteger(grace) && grace >= 0 && grace <= 30, `${grace} s of grace`);
    const handler = readHandler(text);
    if (handler?.kind === "sleep")
      holds(handler.seconds >= 0 && handler.seconds < Infinity, "no time");
    if (handler?.kind !== "http") return;
    const port = handlerPort(handler.port, annotations);
    holds(port === null || (Number.isInteger(port) && port >= 1 && port <= 65_535), `port ${port}`);
    holds(handler.path.startsWith("/"), "a path that would change the host");
  },
);

export const nodeTargets: readonly Target[] = [pods, hook];
