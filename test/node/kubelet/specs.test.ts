import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import type { KubeletOptions } from "../../../src/model/ports.ts";
import type { PodSpecs } from "../../../src/model/snapshot.ts";
import { podSpecReader } from "../../../src/node/kubelet/specs.ts";
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
const readerOf = (change: Partial<KubeletOptions> = {}) =>
  podSpecReader({ ...options, ...change }, () => rootDirectory);
const read = (change: Partial<KubeletOptions> = {}): Promise<PodSpecs> => readerOf(change)(signal);

/** Why a reading failed; the port and the library's words differ from run to run. */
async function failureOf(reading: Promise<PodSpecs>): Promise<string> {
  const { pods, error } = await reading;
  expect(pods).toEqual([]);
  expect(error).not.toBeNull();
  return (error ?? "")
    .replaceAll(/127\.0\.0\.1:\d+/g, "HOST:PORT")
    .replaceAll(directory, "")
    .replace(/ failed: (?!.*(?:larger than|no complete|certificate and key files)).*/, " failed");
}

/** The images that crigc reads from a list of these pods, by pod. */
async function imagesFrom(pods: readonly object[]) {
  kubelet.answer = { kind: "pods", pods };
  const found = await read();
  expect(found.error).toBeNull();
  return Object.fromEntries(found.pods.map(({ uid, images }) => [String(uid), images]));
}

const specOf = (image: string) => ({ spec: { containers: [{ image }] } });

describe("the kubelet's list of pods", () => {
  test("is read over HTTPS with the bearer token of the file", async () => {
    expect(Object.keys(await imagesFrom([aPod("uid-a"), aPod("uid-b")]))).toEqual([
      "uid-a",
      "uid-b",
    ]);
    expect(kubelet.requests.at(-1)).toEqual({ path: "/pods", authorization: "Bearer s3cret" });
  });

  test("names the images of all containers and of image volumes, of finished pods too", async () => {
    const spec = {
      initContainers: [{ image: "init:1" }],
      containers: [{ image: "app:1" }, { image: "app:1" }],
      ephemeralContainers: [{ image: "debug:1" }, {}],
      volumes: [
        { name: "data", image: { reference: "volume:1" } },
        { name: "none", emptyDir: {} },
      ],
    };
    const pods = [
      aPod("uid-a", { spec, status: { phase: "Succeeded" } }),
      aPod("uid-b", { ...specOf("next:1"), status: { phase: "Pending" } }),
    ];
    expect(await imagesFrom(pods)).toEqual({
      "uid-a": ["init:1", "app:1", "debug:1", "volume:1"],
      "uid-b": ["next:1"],
    });
  });

  test("may be empty, as the kubelet writes it", async () => {
    const body = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}';
    kubelet.answer = { kind: "text", status: 200, body };
    expect(await read()).toEqual({ pods: [], error: null });
  });
});

describe("the images of a pod whose directory exists", () => {
  const directoryOf = (uid: string): string => join(rootDirectory, "pods", uid);

  test("count as last read while the kubelet does not answer or list it, until the directory is gone", async () => {
    mkdirSync(directoryOf("uid-here"), { recursive: true });
    const here = { uid: podUid("uid-here"), images: ["here:1"] };
    const reread = readerOf();
    kubelet.answer = {
      kind: "pods",
      pods: [aPod("uid-here", specOf("here:1")), aPod("uid-gone", specOf("gone:1"))],
    };
    expect((await reread(signal)).pods).toHaveLength(2);
    kubelet.answer = { kind: "hang-up" };
    expect(await reread(signal)).toMatchObject({ pods: [here], error: expect.any(String) });
    kubelet.answer = { kind: "pods", pods: [] };
    expect(await reread(signal)).toEqual({ pods: [here], error: null });
    rmSync(directoryOf("uid-here"), { recursive: true });
    expect(await reread(signal)).toEqual({ pods: [], error: null });
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
    expect((await read({ endpoint: impostor.endpoint })).error).not.toBeNull();
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
    expect(reading.error).toBeNull();
  });

  test("is not checked through a proxy of the environment", async () => {
    kubelet.answer = { kind: "pods", pods: [] };
    const before = process.env["HTTPS_PROXY"];
    process.env["HTTPS_PROXY"] = "http://127.0.0.1:1";
    try {
      expect((await read()).error).toBeNull();
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
    expect(reading.error).toBeNull();
    expect(authorization).toBeNull();
  });
});
