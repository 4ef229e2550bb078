import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

import type { PodReading } from "../../../src/model/snapshot.ts";
import { type KubeletOptions, kubeletPods } from "../../../src/node/kubelet/api.ts";
import { readPods } from "../../../src/node/kubelet/pods.ts";
import { makeCertificate } from "../../support/certificate.ts";
import { aPod, type FakeKubelet, podList, startFakeKubelet } from "../../support/fake-kubelet.ts";

const directory = mkdtempSync(join(tmpdir(), "crigc-kubelet-"));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};

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
afterAll(async () => {
  await kubelet[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const rootDirectory = join(directory, "kubelet");
mkdirSync(join(rootDirectory, "pods"), { recursive: true });
const read = (change: Partial<KubeletOptions> = {}, root = rootDirectory): Promise<PodReading> =>
  readPods(
    { source: "kubelet-api", rootDirectory: root, kubelet: { ...options, ...change } },
    signal,
  );

describe("the kubelet's list of pods", () => {
  test("is read over HTTPS with the bearer token of the file", async () => {
    kubelet.answer = { kind: "pods", pods: [aPod("uid-a"), aPod("uid-b")] };
    const reading = await read();
    expect(reading.kind === "ready" && reading.pods.map((pod) => String(pod.uid))).toEqual([
      "uid-a",
      "uid-b",
    ]);
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
    kubelet.answer = {
      kind: "pods",
      pods: [
        aPod("uid-a", { spec, status: { phase: "Succeeded" } }),
        aPod("uid-b", { status: { phase: "Failed", reason: "Evicted" } }),
        aPod("uid-c", { status: { phase: "Running", reason: "Evicted" } }),
        aPod("uid-d", { status: { phase: "Pending" } }),
      ],
    };
    const pods = await kubeletPods(options, signal);
    expect(pods.map(({ uid, finished, evicted }) => [String(uid), finished, evicted])).toEqual([
      ["uid-a", true, false],
      ["uid-b", true, true],
      ["uid-c", false, false],
      ["uid-d", false, false],
    ]);
    expect(pods[0]?.images).toEqual(["init:1", "app:1", "volume:1"]);
  });

  test("lists a static pod by its own UID and by its mirror's", async () => {
    const annotations = { "kubernetes.io/config.hash": "0123abcd" };
    kubelet.answer = { kind: "pods", pods: [aPod("uid-mirror", { annotations })] };
    const pods = await kubeletPods(options, signal);
    expect(pods.map((pod) => String(pod.uid))).toEqual(["uid-mirror", "0123abcd"]);
  });

  test("distinguishes pods of the API server from static ones by the kubelet's annotation", async () => {
    const from = (source: string, more: object = {}) => ({
      annotations: { "kubernetes.io/config.source": source, ...more },
    });
    kubelet.answer = {
      kind: "pods",
      pods: [
        aPod("uid-api", from("api")),
        aPod("uid-file", from("file", { "kubernetes.io/config.hash": "uid-file" })),
        aPod("uid-mirror", from("api", { "kubernetes.io/config.mirror": "uid-of-file" })),
        aPod("uid-plain"),
      ],
    };
    const pods = await kubeletPods(options, signal);
    expect(pods.map(({ uid, origin }) => [String(uid), origin])).toEqual([
      ["uid-api", "api"],
      ["uid-file", "static"],
      ["uid-mirror", "api"],
      ["uid-of-file", "static"],
      ["uid-plain", "listed"],
    ]);
  });

  test("ignores a pod's annotations about another pod", async () => {
    const forged = (uid: string) => ({
      annotations: {
        "kubernetes.io/config.source": "api",
        "kubernetes.io/config.mirror": uid,
      },
      status: { phase: "Failed", reason: "Evicted" },
    });
    kubelet.answer = {
      kind: "pods",
      pods: [
        aPod("uid-victim", { annotations: { "kubernetes.io/config.source": "api" } }),
        aPod("uid-x", forged("uid-victim")),
        aPod("uid-y", forged("uid-unlisted")),
      ],
    };
    const pods = await kubeletPods(options, signal);
    expect(
      pods.map(({ uid, origin, finished, evicted }) => [String(uid), origin, finished, evicted]),
    ).toEqual([
      ["uid-victim", "api", false, false],
      ["uid-x", "api", true, true],
      ["uid-y", "api", true, true],
      ["uid-unlisted", "static", false, false],
    ]);
  });

  test("is joined with the directories of pods that it lacks", async () => {
    const root = join(directory, "another-root");
    for (const uid of ["uid-a", "uid-b"]) mkdirSync(join(root, "pods", uid), { recursive: true });
    kubelet.answer = { kind: "pods", pods: [aPod("uid-a")] };
    const reading = await read({}, root);
    expect(
      reading.kind === "ready" && reading.pods.map(({ uid, origin }) => [String(uid), origin]),
    ).toEqual([
      ["uid-a", "listed"],
      ["uid-b", "directory"],
    ]);
  });

  test("is a failed reading if the directories of pods cannot be read", async () => {
    kubelet.answer = { kind: "pods", pods: [aPod("uid-a")] };
    expect(await read({}, "/nowhere")).toMatchObject({
      kind: "failed",
      source: "kubelet-api",
      message: expect.stringMatching(
        /cannot read the pods of the kubelet from \/nowhere\/pods: it does not exist; .*--root-dir/,
      ),
    });
  });

  test("may be empty, as the kubelet writes it", async () => {
    const body = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}';
    kubelet.answer = { kind: "text", status: 200, body };
    expect(await read()).toEqual({ kind: "ready", source: "kubelet-api", pods: [] });
  });
});

describe("a kubelet that does not answer as it should is a failed reading", () => {
  const pod = aPod("uid-a");
  test.each([
    [
      "401",
      { kind: "text", status: 401, body: podList([pod]) },
      /status 401; use an identity that may get nodes\/pods/,
    ],
    ["403", { kind: "text", status: 403, body: "" }, /status 403; use an identity/],
    [
      "500",
      { kind: "text", status: 500, body: podList([pod]) },
      /status 500; see the kubelet's log/,
    ],
    ["a redirect", { kind: "text", status: 302, body: "" }, /status 302/],
    ["garbage", { kind: "text", status: 200, body: "<html>" }, /it is not JSON/],
    ["nothing", { kind: "text", status: 200, body: "" }, /it is not JSON/],
    [
      "another kind",
      { kind: "text", status: 200, body: '{"kind":"Status","items":[]}' },
      /it is not a PodList/,
    ],
    [
      "no items",
      { kind: "text", status: 200, body: '{"kind":"PodList"}' },
      /it has no list of items/,
    ],
    [
      "items that are no list",
      { kind: "text", status: 200, body: '{"kind":"PodList","items":{}}' },
      /no list of items/,
    ],
    [
      "a pod without a UID",
      { kind: "pods", pods: [pod, { metadata: { name: "x" } }] },
      /item 1 has no metadata.uid/,
    ],
    ["a closed connection", { kind: "hang-up" }, /GET https.*failed/],
    ["half an answer", { kind: "cut-off" }, /GET https.*failed/],
  ] as const)("%s", async (_, answer, message) => {
    kubelet.answer = answer;
    const reading = await read();
    expect(reading.kind).toBe("failed");
    expect(reading.kind === "failed" && reading.message).toMatch(message);
  });

  test("silence until the deadline", async () => {
    kubelet.answer = { kind: "silence" };
    const reading = await read({ timeoutMs: 200 });
    expect(reading).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/no complete response within 200 ms/),
    });
  });

  test("a closed port", async () => {
    const reading = await read({ endpoint: "https://127.0.0.1:1" });
    expect(reading).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/127\.0\.0\.1:1\/pods failed/),
    });
  });

  test("an endless list", async () => {
    kubelet.answer = { kind: "text", status: 200, body: "x".repeat(64 * 1024 * 1024 + 1) };
    const reading = await read({ timeoutMs: 60_000 });
    expect(reading).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/exceeds 67108864 bytes/),
    });
  });
});

describe("the identity of the kubelet's port", () => {
  test("is required: without a CA crigc sends no request and no token", async () => {
    const before = kubelet.requests.length;
    const reading = await read({ caFile: null });
    expect(reading).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/--kubelet-ca-file/),
    });
    expect(kubelet.requests).toHaveLength(before);
  });

  test("is refused with a certificate of another CA", async () => {
    const before = kubelet.requests.length;
    const other = makeCertificate({ name: "cluster-ca", authority: true });
    const reading = await read({ caFile: file("other.crt", other.certificate) });
    expect(reading.kind).toBe("failed");
    expect(kubelet.requests).toHaveLength(before);
  });

  test("is refused with a certificate for another node", async () => {
    const elsewhere = makeCertificate({
      name: "x",
      dnsNames: ["another-node.example"],
      issuer: ca,
    });
    await using impostor = await startFakeKubelet(elsewhere);
    const reading = await read({ endpoint: impostor.endpoint });
    expect(reading.kind).toBe("failed");
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

  test.each([
    [
      "the CA",
      { caFile: "/nowhere/ca.crt" },
      /cannot read the kubelet's CA from \/nowhere\/ca.crt: it does not exist/,
    ],
    ["the token", { tokenFile: "/nowhere/token" }, /cannot read the token from/],
    [
      "the client certificate",
      { clientCertFile: "/nowhere/client.crt" },
      /cannot read the client certificate/,
    ],
  ] as const)("fails if %s cannot be read", async (_, change, message) => {
    expect(await read(change)).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(message),
    });
  });

  test("fails if the endpoint is invalid", async () => {
    expect(await read({ endpoint: "127.0.0.1:10250" })).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/is not an https: or http: URL/),
    });
  });
});
