// What an answer does not say is an error, never a guess.
import { describe, expect, test } from "bun:test";

import { containerId, sandboxId } from "../../src/model/ids.ts";
import type { RuntimeReader } from "../../src/model/ports.ts";
import { connected, failureOf } from "./connection.ts";

const node = {
  images: [{ id: "image", sizeBytes: 1 }],
  sandboxes: [{ id: "sandbox" }],
  containers: [{ id: "container", sandboxId: "sandbox", image: "image" }],
};

/** Changes the first item of a list, or the message itself where `field` is a single one; `null` omits it. */
const edited =
  (field: string, change: object | null) =>
  (answer: object): object => {
    if (change === null) return {};
    const value = (answer as Readonly<Record<string, unknown>>)[field];
    const changed = { ...((Array.isArray(value) ? value[0] : value) as object), ...change };
    return { ...answer, [field]: Array.isArray(value) ? [changed] : changed };
  };

type Ask = (reader: RuntimeReader, signal: AbortSignal) => Promise<unknown>;

const asks = {
  ListImages: (reader, signal) => reader.listImages(signal),
  ListContainers: (reader, signal) => reader.listContainers(signal),
  ListPodSandbox: (reader, signal) => reader.listSandboxes(signal),
  ContainerStatus: (reader, signal) => reader.containerDetail(containerId("container"), signal),
  PodSandboxStatus: (reader, signal) => reader.sandboxDetail(sandboxId("sandbox"), signal),
  ImageFsInfo: (reader, signal) => reader.reportedFilesystems(signal),
} satisfies Readonly<Record<string, Ask>>;

describe("a response is refused", () => {
  test.each<[string, keyof typeof asks, string, object | null]>([
    ["an image has no ID", "ListImages", "images", { id: "" }],
    ["a container has no ID", "ListContainers", "containers", { id: "" }],
    [
      "container container names no sandbox",
      "ListContainers",
      "containers",
      { pod_sandbox_id: "" },
    ],
    ["container container has no metadata", "ListContainers", "containers", { metadata: null }],
    ["container container is in state 4", "ListContainers", "containers", { state: 4 }],
    ["container container is in state -1", "ListContainers", "containers", { state: -1 }],
    ["a sandbox has no ID", "ListPodSandbox", "items", { id: "" }],
    ["sandbox sandbox has no metadata", "ListPodSandbox", "items", { metadata: null }],
    ["sandbox sandbox is in state 2", "ListPodSandbox", "items", { state: 2 }],
    ["the status of container container is empty", "ContainerStatus", "status", null],
    ['it is about "" instead of container', "ContainerStatus", "status", { id: "" }],
    ["container container is in state 7", "ContainerStatus", "status", { state: 7 }],
    ['it is about "another" instead of container', "ContainerStatus", "status", { id: "another" }],
    ['it is about "another" instead of sandbox', "PodSandboxStatus", "status", { id: "another" }],
    ['it is about "" instead of sandbox', "PodSandboxStatus", "status", { id: "" }],
    ["the status of sandbox sandbox is empty", "PodSandboxStatus", "status", null],
    ["a filesystem has no mount point", "ImageFsInfo", "image_filesystems", { fs_id: null }],
  ])("because %s", async (fault, method, field, change) => {
    await using connection = await connected({ node });
    const { fake, runtime, signal } = connection;
    fake.fail(method, { kind: "edit", edit: edited(field, change) });
    expect(await failureOf(asks[method](runtime.reader, signal))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining(`violates CRI (${fault})`) as string,
    });
  });

  test("in a stream, too, and the rest of the stream is not read", async () => {
    await using connection = await connected({ node, traits: { runtimeStreams: true } });
    const { fake, runtime, signal } = connection;
    fake.fail("StreamContainers", { kind: "edit", edit: edited("containers", { id: "" }) });
    const error = await failureOf(runtime.reader.listContainers(signal));
    expect(error.kind).toBe("malformed");
  });
});

describe("a response is accepted", () => {
  const answered = async (
    method: keyof typeof asks,
    change: object = {},
    more: Parameters<typeof connected>[0] = {},
  ): Promise<unknown> => {
    await using connection = await connected({ node, ...more });
    const { fake, runtime, signal } = connection;
    fake.fail(method, { kind: "edit", edit: edited("status", change) });
    return await asks[method](runtime.reader, signal);
  };

  test("for a container not created by Kubernetes, with empty names", async () => {
    const foreign = { id: "foreign", sandboxId: "sandbox", image: "x", labels: {} };
    const containers = [...node.containers, foreign];
    const found = await answered("ListContainers", {}, { node: { ...node, containers } });
    expect(found).toMatchObject([{}, { podUid: "", podName: "", podNamespace: "" }]);
  });

  test.each<[string, keyof typeof asks, object, object]>([
    ["an image that has only an ID", "ListImages", {}, [{ repoTags: [], repoDigests: [] }]],
    ["a pod without an address", "PodSandboxStatus", { network: null }, { address: "" }],
  ])("for %s", async (_, method, change, expected) => {
    expect(await answered(method, change)).toMatchObject(expected);
  });
});
