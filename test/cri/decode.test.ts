// What an answer does not say is an error, never a guess.
import { describe, expect, test } from "bun:test";

import { containerId, sandboxId } from "../../src/model/ids.ts";
import type { RuntimeReader } from "../../src/model/ports.ts";
import type { FakeRuntime } from "../support/fake-runtime/server.ts";
import { connected } from "./connection.ts";

const node = {
  images: [{ id: "image", sizeBytes: 1 }],
  sandboxes: [{ id: "sandbox" }],
  containers: [{ id: "container", sandboxId: "sandbox", image: "image" }],
};

/** Changes the first item of a list, or the message itself where `field` is a single one. */
const edited =
  (field: string, change: object) =>
  (answer: object): object => {
    const value = (answer as Readonly<Record<string, unknown>>)[field];
    const changed = { ...((Array.isArray(value) ? value[0] : value) as object), ...change };
    return { ...answer, [field]: Array.isArray(value) ? [changed] : changed };
  };

type Ask = (reader: RuntimeReader, signal: AbortSignal) => Promise<unknown>;

const images: Ask = async (reader, signal) => reader.listImages(signal);
const containers: Ask = async (reader, signal) => reader.listContainers(signal);
const sandboxes: Ask = async (reader, signal) => reader.listSandboxes(signal);
const detail: Ask = async (reader, signal) =>
  reader.containerDetail(containerId("container"), signal);
const sandboxDetail: Ask = async (reader, signal) =>
  reader.sandboxDetail(sandboxId("sandbox"), signal);
const filesystems: Ask = async (reader, signal) => reader.reportedFilesystems(signal);

describe("a response is refused", () => {
  test.each<[string, string, (answer: object) => object, Ask]>([
    ["an image has no ID", "ListImages", edited("images", { id: "" }), images],
    ["a container has no ID", "ListContainers", edited("containers", { id: "" }), containers],
    [
      "container container names no sandbox",
      "ListContainers",
      edited("containers", { pod_sandbox_id: "" }),
      containers,
    ],
    [
      "container container has no metadata",
      "ListContainers",
      edited("containers", { metadata: null }),
      containers,
    ],
    [
      "container container is in state 4",
      "ListContainers",
      edited("containers", { state: 4 }),
      containers,
    ],
    [
      "container container is in state -1",
      "ListContainers",
      edited("containers", { state: -1 }),
      containers,
    ],
    ["a sandbox has no ID", "ListPodSandbox", edited("items", { id: "" }), sandboxes],
    [
      "sandbox sandbox has no metadata",
      "ListPodSandbox",
      edited("items", { metadata: null }),
      sandboxes,
    ],
    ["sandbox sandbox is in state 2", "ListPodSandbox", edited("items", { state: 2 }), sandboxes],
    ["the status of a container is empty", "ContainerStatus", () => ({}), detail],
    [
      "the status of a container has no ID",
      "ContainerStatus",
      edited("status", { id: "" }),
      detail,
    ],
    [
      "container container is in state 7",
      "ContainerStatus",
      edited("status", { state: 7 }),
      detail,
    ],
    [
      "it is about another instead of container",
      "ContainerStatus",
      edited("status", { id: "another" }),
      detail,
    ],
    [
      "it is about another instead of sandbox",
      "PodSandboxStatus",
      edited("status", { id: "another" }),
      sandboxDetail,
    ],
    ["the status of sandbox sandbox is empty", "PodSandboxStatus", () => ({}), sandboxDetail],
    [
      "a filesystem has no mount point",
      "ImageFsInfo",
      edited("image_filesystems", { fs_id: null }),
      filesystems,
    ],
  ])("because %s", async (fault, method, edit, ask) => {
    await using connection = await connected({ node });
    const { fake, runtime, signal } = connection;
    fake.fail(method, { kind: "edit", edit });
    expect(await outcomeOf(ask(runtime.reader, signal))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining(`violates CRI (${fault})`) as string,
    });
  });

  test("in a stream, too, and the rest of the stream is not read", async () => {
    await using connection = await connected({ node, traits: { runtimeStreams: true } });
    const { fake, runtime, signal } = connection;
    fake.fail("StreamContainers", { kind: "edit", edit: edited("containers", { id: "" }) });
    expect(await outcomeOf(runtime.reader.listContainers(signal))).toMatchObject({
      kind: "malformed",
    });
  });
});

describe("a response is accepted", () => {
  const listed = async (
    change: (fake: FakeRuntime) => void,
    ask: Ask,
  ): Promise<readonly [unknown, FakeRuntime]> => {
    await using connection = await connected({ node });
    change(connection.fake);
    return [await ask(connection.runtime.reader, connection.signal), connection.fake];
  };

  test("for a container not created by Kubernetes, with empty names", async () => {
    const foreign = { id: "foreign", sandboxId: "sandbox", image: "x", labels: {} };
    const [found] = await listed((fake) => fake.node.addContainer(foreign), containers);
    expect(found).toMatchObject([{}, { podUid: "", podName: "", podNamespace: "" }]);
  });

  test("for an image that has only an ID", async () => {
    const [found] = await listed(() => undefined, images);
    expect(found).toMatchObject([{ id: "image", repoTags: [], repoDigests: [] }]);
  });

  test.each(["0", "-6795364578871345152"])(
    "for a container that ended at %s, which counts as not ended",
    async (finished_at) => {
      const edit = edited("status", { finished_at });
      const [found] = await listed(
        (fake) => fake.fail("ContainerStatus", { kind: "edit", edit }),
        detail,
      );
      expect(found).toMatchObject({ finishedAt: null });
    },
  );

  test("for a pod in its node's network, which has no address", async () => {
    const edit = edited("status", { network: null });
    const [found] = await listed(
      (fake) => fake.fail("PodSandboxStatus", { kind: "edit", edit }),
      sandboxDetail,
    );
    expect(found).toMatchObject({ address: "" });
  });

  test.each([
    ["v1.7.24", "1.7.24"],
    ["1.30.1", "1.30.1"],
    ["v2.1.0-rc.1+unknown", "2.1.0-rc.1+unknown"],
    ["version-x", "version-x"],
  ])("for a runtime of version %s, which is %s", async (version, expected) => {
    await using connection = await connected({ traits: { version } });
    const info = await connection.runtime.reader.info(connection.signal);
    expect(info.version).toBe(expected);
  });
});

async function outcomeOf(asked: Promise<unknown>): Promise<unknown> {
  return asked.catch((thrown: unknown) => thrown);
}
