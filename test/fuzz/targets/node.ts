// What other programs of the node write: the kubelet's pods, archives, hooks of pods.

import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";

import fc from "fast-check";

import { graceSecondsOf, handlerPort, readHandler } from "../../../src/gc/stop-pod.ts";
import { HostError } from "../../../src/model/errors.ts";
import { archivedImages } from "../../../src/node/archive.ts";
import { podsIn } from "../../../src/node/kubelet/specs.ts";
import { tarOf } from "../../support/containerd/tar.ts";
import { bytesOf, encoded, jsonOf, signs, textOf } from "../inputs.ts";
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

/** A file whose bytes are those of the input; read before the next one. */
const home = mkdtempSync(join(tmpdir(), "crigc-fuzz-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
function fileOf(name: string, bytes: Uint8Array): string {
  const path = join(home, name);
  const file = openSync(path, "w");
  writeSync(file, bytes);
  closeSync(file);
  return path;
}

const config = JSON.stringify({ architecture: "amd64", os: "linux" });
const digest = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const manifest = JSON.stringify({ config: { digest: `sha256:${digest(config)}` }, layers: [] });
const saved = tarOf(
  Object.entries({
    "config.json": config,
    "manifest.json": JSON.stringify([{ Config: "config.json", RepoTags: ["app:1"] }]),
  }),
);
const layout = tarOf(
  Object.entries({
    [`blobs/sha256/${digest(config)}`]: config,
    [`blobs/sha256/${digest(manifest)}`]: manifest,
    "index.json": JSON.stringify({
      manifests: [
        {
          digest: `sha256:${digest(manifest)}`,
          annotations: { "io.containerd.image.name": "a/b:1" },
        },
      ],
    }),
  }),
);

/** Damaged headers get a right sum again, else nothing but the sum would ever be tried. */
function withSums(bytes: Uint8Array): Uint8Array {
  const whole = bytes.slice();
  for (let at = 0; at + 512 <= whole.length; at += 512) {
    if (Buffer.from(whole.subarray(at + 257, at + 262)).toString("latin1") !== "ustar") continue;
    whole.fill(0x20, at + 148, at + 156);
    const sum = whole.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
    whole.set(encoded(`${sum.toString(8).padStart(6, "0")}\0 `), at + 148);
  }
  return whole;
}

const tar: Target = {
  name: "tar",
  inputs: fc.oneof(
    bytesOf([saved, layout]).map(withSums),
    bytesOf([
      saved,
      layout,
      new Uint8Array(gzipSync(saved)),
      new Uint8Array(zstdCompressSync(layout)),
    ]),
  ),
  check: async (input) => {
    const path = fileOf("archive.tar", input);
    const images = await refusedLater(archivedImages(path));
    if (images !== null) holds(images.length > 0, "an archive without an image");
  },
};

async function refusedLater<Result>(read: Promise<Result>): Promise<Result | null> {
  try {
    return await read;
  } catch (thrown) {
    if (thrown instanceof HostError) return null;
    throw thrown;
  }
}

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
    const grace = graceSecondsOf(annotations, 30);
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

export const nodeTargets: readonly Target[] = [pods, tar, hook];
