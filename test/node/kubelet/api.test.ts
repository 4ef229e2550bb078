import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

import type { PodReading } from "../../../src/model/snapshot.ts";
import { type KubeletOptions, kubeletPods } from "../../../src/node/http.ts";
import { readPods } from "../../../src/node/kubelet/pods.ts";
import { makeCertificate } from "../../support/certificate.ts";
import { aPod, type FakeKubelet, podList, startFakeKubelet } from "../../support/fake-kubelet.ts";
import { put, scratch } from "../../support/scratch.ts";

const directory = scratch();
const file = (name: string, text: string): string => put(directory, name, text);

// As a kubelet makes it: it names the node, and not the address that it is reached by.
const ca = makeCertificate({ name: "cluster-ca", authority: true });
const serving = makeCertificate({ name: "node", dnsNames: [hostname().toLowerCase()], issuer: ca });
const caFile = file("ca.crt", ca.certificate);
const signal = new AbortController().signal;

let kubelet: FakeKubelet;
let options: KubeletOptions;
beforeAll(async () => {
  kubelet = await startFakeKubelet(serving);
  options = {
    endpoint: kubelet.endpoint,
    caFile,
    clientCertFile: null,
    clientKeyFile: null,
    tokenFile: file("token", "s3cret\n"),
    timeoutMs: 5000,
  };
});
afterAll(() => kubelet[Symbol.asyncDispose]());

const rootDirectory = join(directory, "kubelet");
mkdirSync(join(rootDirectory, "pods"), { recursive: true });
const read = (change: Partial<KubeletOptions> = {}, root = rootDirectory): Promise<PodReading> =>
  readPods(
    { source: "kubelet-api", rootDirectory: root, kubelet: { ...options, ...change } },
    signal,
  );

/** Why a reading failed; the port and the library's words differ from run to run. */
async function failureOf(reading: Promise<PodReading>): Promise<string> {
  const found = await reading;
  expect(found).toMatchObject({ kind: "failed", source: "kubelet-api" });
  const message = found.kind === "failed" ? found.message : "";
  return message
    .replaceAll(/127\.0\.0\.1:\d+/g, "HOST:PORT")
    .replaceAll(directory, "")
    .replace(/ failed: (?!.*(?:larger than|no complete|certificate and key files)).*/, " failed");
}

/** What crigc reads from a list of these pods. */
async function podsFrom(pods: readonly object[]) {
  kubelet.answer = { kind: "pods", pods };
  return (await kubeletPods(options, signal)).map((pod) => ({ ...pod, uid: String(pod.uid) }));
}
const annotated = (uid: string, annotations: Readonly<Record<string, string>>, more = {}) =>
  aPod(uid, {
    annotations: Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [`kubernetes.io/config.${key}`, value]),
    ),
    ...more,
  });

describe("the kubelet's list of pods", () => {
  test("is read over HTTPS with the bearer token of the file", async () => {
    const pods = await podsFrom([aPod("uid-a"), aPod("uid-b")]);
    expect(pods.map(({ uid }) => uid)).toEqual(["uid-a", "uid-b"]);
    expect(kubelet.requests.at(-1)).toEqual({ path: "/pods", authorization: "Bearer s3cret" });
  });

  test("says which pods have finished, which were evicted, and which images they name", async () => {
    const spec = {
      initContainers: [{ image: "init:1" }],
      containers: [{ image: "app:1" }, { image: "app:1" }],
      volumes: [
        { name: "data", image: { reference: "volume:1" } },
        { name: "none", emptyDir: {} },
      ],
    };
    const pods = await podsFrom([
      aPod("uid-a", { spec, status: { phase: "Succeeded" } }),
      aPod("uid-b", { status: { phase: "Failed", reason: "Evicted" } }),
      aPod("uid-c", { status: { phase: "Running", reason: "Evicted" } }),
      aPod("uid-d", { status: { phase: "Pending" } }),
    ]);
    expect(pods.map(({ uid, finished, evicted }) => [uid, finished, evicted])).toEqual([
      ["uid-a", true, false],
      ["uid-b", true, true],
      ["uid-c", false, false],
      ["uid-d", false, false],
    ]);
    expect(pods[0]?.images).toEqual(["init:1", "app:1", "volume:1"]);
  });

  test("has a static pod by its own UID and its mirror's, and ignores annotations about other pods", async () => {
    const evicted = { status: { phase: "Failed", reason: "Evicted" } };
    const pods = await podsFrom([
      annotated("uid-api", { source: "api" }),
      annotated("uid-file", { source: "file", hash: "uid-file" }),
      annotated("uid-mirror", { source: "api", mirror: "uid-of-file" }),
      annotated("uid-hashed", { hash: "0123abcd" }),
      aPod("uid-plain"),
      annotated("uid-victim", { source: "api" }),
      annotated("uid-x", { source: "api", mirror: "uid-victim" }, evicted),
      annotated("uid-y", { source: "api", mirror: "uid-unlisted" }, evicted),
    ]);
    const shown = pods.map((it) => `${it.uid} ${it.origin}${it.evicted ? " evicted" : ""}`);
    expect(shown).toEqual([
      "uid-api api",
      "uid-file static",
      "uid-mirror api",
      "uid-of-file static",
      "uid-hashed listed",
      "0123abcd static",
      "uid-plain listed",
      "uid-victim api",
      "uid-x api evicted",
      "uid-y api evicted",
      "uid-unlisted static",
    ]);
  });

  test("is joined with the directories of pods that it lacks, and fails without them", async () => {
    const root = join(directory, "another-root");
    for (const uid of ["uid-a", "uid-b"]) mkdirSync(join(root, "pods", uid), { recursive: true });
    kubelet.answer = { kind: "pods", pods: [aPod("uid-a")] };
    expect(await read({}, root)).toMatchObject({
      pods: [
        { uid: "uid-a", origin: "listed" },
        { uid: "uid-b", origin: "directory" },
      ],
    });
    expect(await failureOf(read({}, "/nowhere"))).toMatch(
      /cannot read the pods of the kubelet from \/nowhere\/pods: it does not exist; .*--root-dir/,
    );
  });

  test("may be empty, as the kubelet writes it", async () => {
    const body = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}';
    kubelet.answer = { kind: "text", status: 200, body };
    expect(await read()).toEqual({ kind: "ready", source: "kubelet-api", pods: [] });
  });
});

const text = (status: number, body: string) => ({ kind: "text", status, body }) as const;
const pod = aPod("uid-a");

test.each([
  ["status 401", text(401, podList([pod]))],
  ["status 403", text(403, "")],
  ["status 500", text(500, podList([pod]))],
  ["a redirect", text(302, "")],
  ["garbage", text(200, "<html>")],
  ["nothing", text(200, "")],
  ["another kind", text(200, '{"kind":"Status","items":[]}')],
  ["no items", text(200, '{"kind":"PodList"}')],
  ["items that are no list", text(200, '{"kind":"PodList","items":{}}')],
  ["a pod without a UID", { kind: "pods", pods: [pod, { metadata: { name: "x" } }] }],
  [
    "an image that is no name",
    { kind: "pods", pods: [{ ...pod, spec: { containers: [{ image: {} }] } }] },
  ],
  ["an endless list", text(200, "x".repeat((64 << 20) + 1))],
  ["a closed connection", { kind: "hang-up" }],
  ["half an answer", { kind: "cut-off" }],
  ["silence", { kind: "silence" }],
] as const)("a kubelet that answers with %s is a failed reading", async (_, answer) => {
  kubelet.answer = answer;
  const timeoutMs = answer.kind === "silence" ? 300 : 60_000;
  expect(await failureOf(read({ timeoutMs }))).toMatchSnapshot();
});

test.each<[string, Partial<KubeletOptions>]>([
  ["the port is closed", { endpoint: "https://127.0.0.1:1" }],
  ["there is no CA", { caFile: null }],
  ["the CA cannot be read", { caFile: "/nowhere/ca.crt" }],
  ["the CA is not a certificate", { caFile: file("text.crt", "127.0.0.1 localhost") }],
  ["the token cannot be read", { tokenFile: "/nowhere/token" }],
  ["the client certificate cannot be read", { clientCertFile: "/nowhere/client.crt" }],
])("if %s, no request and no token is sent", async (_, change) => {
  const before = kubelet.requests.length;
  expect(await failureOf(read(change))).toMatchSnapshot();
  expect(kubelet.requests).toHaveLength(before);
});

describe("the identity of the kubelet's port", () => {
  test.each([
    ["of another CA", makeCertificate({ name: "cluster-ca", authority: true }), [hostname()]],
    ["for another node", ca, ["another-node.example"]],
  ])("is refused with a certificate %s", async (_, issuer, dnsNames) => {
    await using impostor = await startFakeKubelet(makeCertificate({ name: "x", dnsNames, issuer }));
    expect((await read({ endpoint: impostor.endpoint })).kind).toBe("failed");
    expect(impostor.requests).toEqual([]);
  });

  test("is accepted with a self-signed certificate from the file, whatever its names", async () => {
    const own = makeCertificate({ name: "own", dnsNames: ["some-node"], authority: true });
    await using selfSigned = await startFakeKubelet(own);
    selfSigned.answer = { kind: "pods", pods: [aPod("uid-a")] };
    const reading = await read({
      endpoint: selfSigned.endpoint,
      caFile: file("own.crt", own.certificate),
    });
    expect(reading.kind).toBe("ready");
  });

  test("is not checked through a proxy of the environment", async () => {
    kubelet.answer = { kind: "pods", pods: [] };
    const before = process.env["HTTPS_PROXY"];
    process.env["HTTPS_PROXY"] = "http://127.0.0.1:1";
    try {
      expect((await read()).kind).toBe("ready");
    } finally {
      if (before === undefined) delete process.env["HTTPS_PROXY"];
      else process.env["HTTPS_PROXY"] = before;
    }
  });

  test("is unchecked over http:, so no token is sent", async () => {
    let authorization: string | null = "not asked";
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        authorization = request.headers.get("authorization");
        return new Response(podList([aPod("uid-a")]));
      },
    });
    const reading = await read({ endpoint: `http://127.0.0.1:${server.port}`, caFile: null });
    expect(reading.kind).toBe("ready");
    expect(authorization).toBeNull();
  });
});
