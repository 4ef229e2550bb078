// The fake runtime does what tests rely on: it frees space late or not at all, shares layers, fails on request.
import { describe, expect, test } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { openRuntime } from "../../src/cri/client.ts";
import { imageId } from "../../src/model/ids.ts";
import { seconds } from "../../src/model/time.ts";
import { connected } from "../cri/connection.ts";
import { put, scratch } from "./scratch.ts";

const shared = { id: "base", bytes: 300_000 };
const images = [
  { id: "a", layers: [shared, { id: "a", bytes: 100_000 }] },
  { id: "b", layers: [shared, { id: "b", bytes: 50_000 }] },
];

const bytesIn = (directory: string): number =>
  readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);

describe("the store", () => {
  test("keeps a layer for as long as an image needs it, as real files", async () => {
    const directory = scratch();
    await using connection = await connected({ node: { images }, store: { directory } });
    const { fake, runtime, signal } = connection;
    expect(bytesIn(directory)).toBe(450_000);
    await runtime.writer.removeImage(imageId("a"));
    expect(bytesIn(directory)).toBe(350_000);
    const reported = await runtime.reader.reportedFilesystems(signal);
    expect(reported.images).toEqual([{ path: directory, usedBytes: 350_000n, inodesUsed: 2n }]);
    await runtime.writer.removeImage(imageId("b"));
    expect(bytesIn(directory)).toBe(0);
    expect(fake.node.images).toEqual([]);
  });

  test("frees space only after the answer where it is told to be late", async () => {
    const directory = scratch();
    const store = { directory, releaseDelayMs: 150 };
    await using connection = await connected({ node: { images }, store });
    await connection.runtime.writer.removeImage(imageId("a"));
    expect(bytesIn(directory)).toBe(450_000);
    const deadline = performance.now() + 5000;
    while (bytesIn(directory) !== 350_000 && performance.now() < deadline) await Bun.sleep(5);
    expect(bytesIn(directory)).toBe(350_000);
  });

  test("keeps a ghost, whose removal is answered all the same", async () => {
    await using connection = await connected({ node: { images } });
    const { fake, runtime, signal } = connection;
    fake.node.ghosts.add("a");
    await runtime.writer.removeImage(imageId("a"));
    expect((await runtime.reader.listImages(signal)).map(({ id }) => id)).toContain(imageId("a"));
    expect(fake.node.store.usedBytes).toBe(450_000);
  });
});

describe("faults", () => {
  test("come when and as often as they are planted for", async () => {
    await using connection = await connected({ node: { images } });
    const { fake, runtime, signal } = connection;
    fake.fail("ImageStatus", { kind: "error", code: "UNKNOWN" }, { skip: 1, times: 2 });
    const outcomes: boolean[] = [];
    for (let round = 0; round < 5; round += 1)
      outcomes.push(
        await runtime.reader.imageStatus("a", signal).then(
          () => true,
          () => false,
        ),
      );
    expect(outcomes).toEqual([true, false, false, true, true]);
  });

  test("hit only the requests that they are meant for", async () => {
    await using connection = await connected({ node: { images } });
    const { fake, runtime } = connection;
    const when = (request: object): boolean => JSON.stringify(request).includes('"image":"a"');
    fake.fail("RemoveImage", { kind: "error", code: "UNKNOWN" }, { when });
    await runtime.writer.removeImage(imageId("b"));
    expect(await runtime.writer.removeImage(imageId("a")).catch(() => "failed")).toBe("failed");
  });

  test("can be a broken connection after the deed was done", async () => {
    await using connection = await connected({ node: { images } });
    const { fake, runtime, signal } = connection;
    fake.fail("RemoveImage", { kind: "drop" }, { times: 1 });
    expect(await runtime.writer.removeImage(imageId("a")).catch(() => "failed")).toBe("failed");
    expect(await runtime.reader.listImages(signal)).toHaveLength(1);
  });
});

test("a hook can start a container between a list and a removal", async () => {
  await using connection = await connected({ node: { images, sandboxes: [{ id: "sandbox" }] } });
  const { fake, runtime, signal } = connection;
  fake.before("RemoveImage", () => {
    if (fake.node.containers.size === 0)
      fake.node.addContainer({ id: "late", sandboxId: "sandbox", image: "a" });
  });
  expect(await runtime.reader.listContainers(signal)).toEqual([]);
  await runtime.writer.removeImage(imageId("a"));
  expect(await runtime.reader.listContainers(signal)).toHaveLength(1);
});

test("it refuses an image that a container uses where the runtime would", async () => {
  const node = { images, containers: [{ id: "c", sandboxId: "s", image: "a" }] };
  await using connection = await connected({ node, traits: { refusesUsedImages: true } });
  const refusal = await connection.runtime.writer
    .removeImage(imageId("a"))
    .catch((thrown: unknown) => thrown);
  expect(refusal).toMatchObject({ kind: "failed" });
});

test("it runs as a process of its own, from a file", async () => {
  const directory = scratch();
  const file = put(
    directory,
    "node.json",
    JSON.stringify({
      images,
      ghosts: ["b"],
      traits: { name: "cri-o", version: "1.30.1" },
      faults: [{ method: "ImageFsInfo", fault: { kind: "error", code: "INTERNAL" } }],
    }),
  );
  const socket = join(directory, "cri.sock");
  const calls = join(directory, "calls");
  const main = join(import.meta.dir, "fake-runtime/main.ts");
  const flags = ["--socket", socket, "--node", file, "--store", join(directory, "store")];
  const child = Bun.spawn([process.execPath, main, ...flags, "--calls", calls], { stdout: "pipe" });
  await child.stdout.getReader().read();
  const endpoint = `unix://${socket}`;
  const runtime = openRuntime({ endpoint, imageEndpoint: endpoint, requestTimeout: seconds(5) });
  const { signal } = new AbortController();
  expect((await runtime.reader.info(signal)).name).toBe("cri-o");
  await runtime.writer.removeImage(imageId("a"));
  await runtime.writer.removeImage(imageId("b"));
  expect(bytesIn(join(directory, "store"))).toBe(350_000);
  expect(await runtime.reader.reportedFilesystems(signal).catch(() => "failed")).toBe("failed");
  runtime.close();
  child.kill();
  expect(await child.exited).toBe(0);
  const lines = (await Bun.file(calls).text()).trim().split("\n");
  expect(lines.filter((line) => line.includes('"RemoveImage"'))).toHaveLength(2);
});
