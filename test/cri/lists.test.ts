// Lists are whole or an error, however large they are and whatever the runtime can do.
import { describe, expect, test } from "bun:test";

import { containerId, sandboxId } from "../../src/model/ids.ts";
import {
  type ContainerDescription,
  hexId,
  imageIdOf,
  type NodeDescription,
} from "../support/fake-runtime/describe.ts";
import { connected, type Connection, failureOf } from "./connection.ts";

const states = ["created", "running", "exited", "unknown"] as const;

/** Containers in every state, some in each sandbox. */
function nodeOf(counts: {
  containers: number;
  sandboxes: number;
  padding?: number;
}): NodeDescription {
  const labels = { padding: "x".repeat(counts.padding ?? 0) };
  return {
    images: [{ id: imageIdOf(0), repoTags: ["a:1"], sizeBytes: 1 }],
    sandboxes: Array.from({ length: counts.sandboxes }, (_, index) => ({
      id: hexId(`sandbox ${index}`),
      state: index % 3 === 0 ? ("ready" as const) : ("not-ready" as const),
      labels,
    })),
    containers: Array.from({ length: counts.containers }, (_, index) => ({
      id: hexId(`container ${index}`),
      sandboxId: hexId(`sandbox ${index % counts.sandboxes}`),
      image: "a:1",
      state: states[index % 4] ?? "running",
      labels,
    })),
  };
}

/** A runtime with that many things, whose messages have a limit. */
const limited = (containers: number, sandboxes: number, messageLimitBytes: number, padding = 100) =>
  connected({ node: nodeOf({ containers, sandboxes, padding }), traits: { messageLimitBytes } });

/** Every container and sandbox of the node is listed, once. */
async function expectWhole({ fake, runtime, signal }: Connection, withSandboxes = true) {
  const containers = await runtime.reader.listContainers(signal);
  expect(containers.map(({ id }) => id).toSorted()).toEqual(
    Array.from(fake.node.containers.keys(), containerId).toSorted(),
  );
  if (!withSandboxes) return;
  const sandboxes = await runtime.reader.listSandboxes(signal);
  expect(sandboxes.map(({ id }) => id).toSorted()).toEqual(
    Array.from(fake.node.sandboxes.keys(), sandboxId).toSorted(),
  );
}

describe("streaming lists", () => {
  test("are read to their end, batch by batch", async () => {
    await using connection = await connected({
      node: nodeOf({ containers: 25, sandboxes: 25 }),
      traits: { runtimeStreams: true, imageStreams: true, batchSize: 10 },
    });
    const { fake, runtime, signal } = connection;
    await expectWhole(connection);
    expect(await runtime.reader.listImages(signal)).toHaveLength(1);
    expect(fake.calls.map(({ method }) => method)).toEqual([
      "StreamContainers",
      "StreamPodSandboxes",
      "StreamImages",
    ]);
  });

  test("that the runtime lacks are requested only once per list", async () => {
    await using connection = await connected({ traits: { imageStreams: true } });
    const { fake, runtime, signal } = connection;
    for (let round = 0; round < 2; round += 1) {
      await runtime.reader.listContainers(signal);
      await runtime.reader.listSandboxes(signal);
      await runtime.reader.listImages(signal);
    }
    const once = "StreamContainers ListContainers StreamPodSandboxes ListPodSandbox StreamImages";
    const later = "ListContainers ListPodSandbox StreamImages";
    expect(fake.calls.map(({ method }) => method).join(" ")).toBe(`${once} ${later}`);
  });

  test("that break off are an error, not a partial list", async () => {
    await using connection = await connected({
      node: nodeOf({ containers: 25, sandboxes: 1 }),
      traits: { runtimeStreams: true, batchSize: 10 },
    });
    const { fake, runtime, signal } = connection;
    let batches = 0;
    const edit = (batch: object): object => {
      if ((batches += 1) === 3) throw new Error("the store went away");
      return batch;
    };
    fake.fail("StreamContainers", { kind: "edit", edit });
    const error = await failureOf(runtime.reader.listContainers(signal));
    expect(error.kind).toBe("failed");
    expect(error.message).toContain("the store went away");
    expect(fake.callsOf("ListContainers")).toEqual([]);
  });
});

test("a list of 30 MB is split by state", async () => {
  await using connection = await limited(375, 375, 16 << 20, 80_000);
  await expectWhole(connection, false);
  expect(connection.fake.callsOf("ListContainers").map(({ code }) => `${code}`)).toEqual([
    "RESOURCE_EXHAUSTED",
    ...Array<string>(7).fill("OK"),
  ]);
});

test("a list of 30 MB is read at once from a runtime that sends it", async () => {
  await using connection = await limited(375, 375, 64 << 20, 80_000);
  await expectWhole(connection);
  expect(connection.records.map(({ code }) => code)).toEqual([
    "UNIMPLEMENTED",
    "OK",
    "UNIMPLEMENTED",
    "OK",
  ]);
});

test.each([
  ["first message", 1],
  ["second message", 2],
])("a stream whose %s is too large for the runtime is split like a list", async (_, tooLarge) => {
  await using connection = await connected({
    node: nodeOf({ containers: 400, sandboxes: 40, padding: 100 }),
    traits: { runtimeStreams: true, batchSize: 10, messageLimitBytes: 12_000 },
  });
  const { fake } = connection;
  let batches = 0;
  const edit = (batch: object): object => {
    const items = Object.entries(batch)[0] as [string, readonly object[]];
    return (batches += 1) < tooLarge ? batch : { [items[0]]: Array(10).fill(items[1]).flat() };
  };
  const lift = fake.fail("StreamContainers", { kind: "edit", edit });
  await expectWhole(connection, false);
  lift();
  // Once the messages fit again, the list is read as a stream again.
  await expectWhole(connection, false);
  expect(fake.callsOf("StreamContainers").map(({ code }) => code)).toEqual([
    "RESOURCE_EXHAUSTED",
    "OK",
  ]);
});

test("images whose stream is too large for the runtime are read as a list", async () => {
  const images = Array.from({ length: 300 }, (_, index) => ({
    id: imageIdOf(index),
    repoTags: [`r.example/image:${index}`],
    sizeBytes: 1,
  }));
  await using connection = await connected({ node: { images }, traits: { imageStreams: true } });
  const { fake, runtime, signal } = connection;
  fake.fail("StreamImages", { kind: "error", code: "RESOURCE_EXHAUSTED" });
  expect(await runtime.reader.listImages(signal)).toHaveLength(300);
});

test.each([
  ["a state that is too large is split by sandbox", 400, 40, 12_000],
  ["sandboxes are split by state", 0, 100, 26_000],
])("%s", async (_, containers, sandboxes, messageLimitBytes) => {
  await using connection = await limited(containers, sandboxes, messageLimitBytes);
  await expectWhole(connection);
  expect(connection.fake.calls.some(({ code }) => code === "RESOURCE_EXHAUSTED")).toBe(true);
});

test("a list that cannot be split further is an error", async () => {
  await using connection = await limited(40, 1, 6_000, 1000);
  const error = await failureOf(connection.runtime.reader.listContainers(connection.signal));
  expect(error.kind).toBe("too-large");
  expect(error.message).toContain("cannot be split further");
});

test("an error in one part discards the others", async () => {
  await using connection = await limited(100, 10, 15_000);
  const { fake, runtime, signal } = connection;
  fake.fail("ListContainers", { kind: "error", code: "UNKNOWN" }, { skip: 4, times: 1 });
  expect((await failureOf(runtime.reader.listContainers(signal))).kind).toBe("failed");
});

describe("a list in parts of a changing node", () => {
  const moves: readonly (readonly [string, readonly ContainerDescription["state"][]])[] = [
    ["starts", ["created", "running"]],
    ["starts and ends", ["created", "running", "exited"]],
    ["ends", ["running", "exited"]],
    ["is paused", ["running", "unknown"]],
    ["is resumed", ["unknown", "running"]],
    ["is paused and resumed", ["running", "unknown", "running"]],
    ["is found dead", ["unknown", "exited"]],
    ["is paused and dies", ["running", "unknown", "exited"]],
  ];
  // Wherever between the parts each change falls.
  const schedules = [0, 1, 2, 3, 4, 5, 6].flatMap((first) =>
    [0, 1, 2, 3].map((gap) => [first, first + gap] as const),
  );

  test.each(moves)("includes a container that %s at any time", async (_, [start, ...changes]) => {
    await using connection = await limited(100, 10, 15_000);
    const { fake, runtime, signal } = connection;
    for (const schedule of schedules) {
      const moving = { id: hexId("moving"), sandboxId: hexId("sandbox 0"), image: "a:1" };
      fake.node.addContainer({ ...moving, state: start ?? "running" });
      let part = -2;
      const lift = fake.before("ListContainers", () => {
        part += 1;
        for (const [index, state] of changes.entries())
          if (state !== undefined && schedule[index] === part)
            fake.node.setContainerState(moving.id, state);
      });
      const found = await runtime.reader.listContainers(signal);
      lift();
      expect([schedule, found.filter(({ id }) => id === moving.id).length]).toEqual([schedule, 1]);
    }
  });
});

test.each([false, true])(
  "a container and a sandbox listed twice count once, by their last entry, unless the images differ (streams: %p)",
  async (runtimeStreams) => {
    await using connection = await connected({
      node: nodeOf({ containers: 1, sandboxes: 1 }),
      traits: { runtimeStreams },
    });
    const { fake, runtime, signal } = connection;
    for (const [id, container] of Array.from(fake.node.containers))
      fake.node.containers.set(`again ${id}`, { ...container, state: "exited" });
    for (const [id, sandbox] of Array.from(fake.node.sandboxes))
      fake.node.sandboxes.set(`again ${id}`, { ...sandbox, state: "not-ready" });
    const containers = await runtime.reader.listContainers(signal);
    expect(containers.map(({ id, state }) => [id, state])).toEqual([
      [containerId(hexId("container 0")), "exited"],
    ]);
    const sandboxes = await runtime.reader.listSandboxes(signal);
    expect(sandboxes.map(({ state }) => state)).toEqual(["not-ready"]);
    for (const [id, container] of Array.from(fake.node.containers))
      if (id.startsWith("again"))
        fake.node.containers.set(id, { ...container, imageId: imageIdOf("another") });
    for (const _ of [1, 2])
      expect(await failureOf(runtime.reader.listContainers(signal))).toMatchObject({
        kind: "malformed",
        message: expect.stringContaining("is listed twice, with different images"),
      });
  },
);
