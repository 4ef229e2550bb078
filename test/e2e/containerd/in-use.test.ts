// What counts as use on real runtimes: names that moved, image volumes, containers that start while a pass runs.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { mebibyte } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  execInContainer,
  removePod,
  runPod,
  runToEnd,
  startContainer,
} from "../../support/containerd/pods.ts";
import { startProgram } from "../../support/containerd/program.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import {
  type Document,
  gc,
  namesOf,
  planImages,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

const image = (name: string, seed = name) => ({
  names: [library(`${name}:1`)],
  layers: [{ seed, sizeBytes: mebibyte }],
  identity: seed,
});
const all = [youngAge, "--all-unused"] as const;
const app = library("app:1");

/** A node on which a pod runs `app`, with other images. */
async function nodeWithApp(release: Release, others: readonly string[]): Promise<ContainerdNode> {
  const node = await startNode(release);
  await loadImages(
    node,
    ["app", ...others].map((name) => image(name)),
  );
  await startContainer(node, await runPod(node, { name: "steady" }), { name: "app", image: app });
  return node;
}
const expectAlive = async (node: ContainerdNode, id: string): Promise<void> =>
  expect(await execInContainer(node, id, ["echo", "alive"])).toBe("alive\n");

describe.each([...releases])("images in use under containerd %s", (release) => {
  test("are kept when their tag moves: the old image for its container, the new one for the name", async () => {
    await using node = await nodeWithApp(release, []);
    const [old] = await loadImages(node, [image("moving", "old")]);
    const moving = { name: "app", image: library("moving:1"), byName: true };
    const { id } = await startContainer(node, await runPod(node, { name: "moved" }), moving);
    const [replacement] = await loadImages(node, [image("moving", "new")]);
    expect(old?.id).not.toBe(replacement?.id);
    await ripen(node, ...all);
    await gc(node, ...all);
    const ids = (await takeInventory(node)).images.map((listed) => listed.id);
    expect(ids).toContain(old?.id ?? "");
    expect(ids).toContain(replacement?.id ?? "");
    await expectAlive(node, id);
  });
});

/** Their removal takes longer than a container takes to start and a list may be old. */
const NAMES = Array.from({ length: 200 }, (_, at) => `number-${at}`);

test("images in use are kept when a container starts from the last candidate during a pass", async () => {
  await using node = await nodeWithApp("1.7", NAMES);
  const pod = await runPod(node, { name: "late" });
  await runToEnd(node, pod, { name: "first", image: app });
  const names = namesOf((await ripen(node, ...all)).candidates);
  const [first = "", last = ""] = [names[0], names.at(-1)];
  const running = startProgram(node, "gc", "-o", "json", ...all);
  await until("the first image is gone", 20_000, async () => {
    return !(await imageTags(node)).includes(first);
  });
  const { id } = await startContainer(node, pod, { name: "second", image: last });
  expect(await running.exited).toBe(0);
  const report: Document = JSON.parse(running.answered());
  expect(removedImages(report)).toEqual(names.slice(0, -1));
  expect(report.images.items.at(-1).result).toMatchObject({
    kind: "skipped",
    reason: { code: "in-use" },
  });
  expect(await imageTags(node)).toContain(last);
  await expectAlive(node, id);
});

test("image volumes under containerd 2.1 are kept and readable while a container mounts them, and removed after it", async () => {
  await using node = await nodeWithApp("2.1", []);
  const model = library("model:1");
  const volumes = ["model", "other"].map((name) => ({ ...image(name), withBusybox: false }));
  await loadImages(node, volumes);
  const pod = await runPod(node, { name: "with-volume" });
  const { id } = await startContainer(node, pod, {
    name: "app",
    image: app,
    mounts: [{ container_path: "/model", image: { image: model }, readonly: true }],
  });
  await ripen(node, ...all);
  expect(removedImages((await gc(node, ...all)).report)).toEqual([library("other:1")]);
  const { kept } = await planImages(node, ...all);
  expect(kept.find(({ name }: Document) => name === model)?.reason).toMatchObject({
    code: "in-use",
    users: [{ kind: "image-volume", podName: "with-volume" }],
  });
  expect(await execInContainer(node, id, ["ls", "/model"])).toBe("data-model\n");
  await removePod(node, pod);
  expect(removedImages((await gc(node, ...all)).report)).toEqual([model]);
});
