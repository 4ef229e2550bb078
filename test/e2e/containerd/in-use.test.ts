import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

// What counts as use on real runtimes: names that moved, image volumes, containers that start while a pass runs.
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
  gc,
  type GcReport,
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

/** For the tests of one `describe`: a node on which a pod runs `app`. */
function nodeWithApp(release: Release): () => ContainerdNode {
  let node: ContainerdNode;
  beforeAll(async () => {
    node = await startNode(release);
    await loadImages(node, [image("app")]);
    const pod = await runPod(node, { name: "steady" });
    await startContainer(node, pod, { name: "app", image: library("app:1") });
  });
  afterAll(async () => {
    await node?.stop();
  });
  return () => node;
}

describe.each([...releases])("images in use under containerd %s", (release) => {
  const given = nodeWithApp(release);

  test("are kept when their tag moves: the old image for its container, the new one for the name", async () => {
    const node = given();
    const [old] = await loadImages(node, [image("moving", "old")]);
    const pod = await runPod(node, { name: "moved" });
    const container = await startContainer(node, pod, {
      name: "app",
      image: library("moving:1"),
      byName: true,
    });
    const [replacement] = await loadImages(node, [image("moving", "new")]);
    expect(old?.id).not.toBe(replacement?.id);
    await ripen(node, ...all);
    await gc(node, ...all);
    const ids = (await takeInventory(node)).images.map(({ id }) => id);
    expect(ids).toContain(old?.id ?? "");
    expect(await execInContainer(node, container.id, ["echo", "alive"])).toBe("alive\n");
    expect(ids).toContain(replacement?.id ?? "");
  });
});

describe("images in use under containerd 1.7", () => {
  const given = nodeWithApp("1.7");

  test("are kept when a container starts from the next candidate during a pass", async () => {
    const node = given();
    const names = ["one", "two", "three", "four"];
    await loadImages(
      node,
      names.map((name) => image(`turn-${name}`)),
    );
    const pod = await runPod(node, { name: "late" });
    await runToEnd(node, pod, { name: "first", image: library("app:1") });
    const { candidates } = await ripen(node, ...all);
    const turns = candidates.map(({ name }) => name);
    expect(turns).toHaveLength(4);
    const running = startProgram(node, "gc", "-o", "json", ...all, "--removal-interval=1s");
    await until("the first image is gone", 20_000, async () => {
      return !(await imageTags(node)).includes(turns[0] ?? "");
    });
    const { id } = await startContainer(node, pod, { name: "second", image: turns[2] ?? "" });
    expect(await running.exited).toBe(0);
    const report = JSON.parse(running.answered()) as GcReport;
    expect(removedImages(report)).toEqual([turns[0] ?? "", turns[1] ?? "", turns[3] ?? ""]);
    expect(report.images?.items[2]?.result).toMatchObject({
      kind: "skipped",
      reason: { code: "in-use" },
    });
    expect(await imageTags(node)).toContain(turns[2] ?? "");
    expect(await execInContainer(node, id, ["echo", "alive"])).toBe("alive\n");
    await removePod(node, pod);
  });

  test("are kept when a pod has just started: the pass waits for its containers", async () => {
    const node = given();
    await loadImages(node, [image("wanted"), image("unwanted")]);
    await ripen(node, ...all);
    const pod = await runPod(node, { name: "starting" });
    const running = startProgram(node, "gc", "-o", "json", "--images", ...all);
    // It could be done by now, had it not to wait.
    await Bun.sleep(1_500);
    expect(await imageTags(node)).toContain(library("unwanted:1"));
    await startContainer(node, pod, { name: "app", image: library("wanted:1") });
    expect(await running.exited).toBe(0);
    const report = JSON.parse(running.answered()) as GcReport;
    expect(removedImages(report)).toContain(library("unwanted:1"));
    expect(await imageTags(node)).toContain(library("wanted:1"));
    expect(report.tookMs).toBeWithin(500, 10_000);
    await removePod(node, pod);
  });

  test("are kept for the boot grace when all containers vanish at once", async () => {
    const node = given();
    await loadImages(node, [image("waiting")]);
    await ripen(node, ...all);
    for (const { id } of (await takeInventory(node)).sandboxes) {
      await node.cri.call("StopPodSandbox", { pod_sandbox_id: id });
      await node.cri.call("RemovePodSandbox", { pod_sandbox_id: id });
    }
    const before = await takeInventory(node);
    const { exitCode, report } = await gc(node, ...all);
    expect({ exitCode, blocks: report.plan.images?.blocks }).toMatchObject({
      exitCode: 4,
      blocks: [{ code: "boot-grace", because: "containers-vanished" }],
    });
    await gc(node, ...all);
    expect(await takeInventory(node)).toEqual(before);
    const after = await gc(node, ...all, "--boot-grace=0s");
    expect(removedImages(after.report)).toContain(library("waiting:1"));
  });
});

describe("image volumes under containerd 2.1", () => {
  let node: ContainerdNode;
  const model = library("model:1");

  beforeAll(async () => {
    node = await startNode("2.1");
    await loadImages(node, [
      image("app"),
      { ...image("model"), withBusybox: false },
      { ...image("other"), withBusybox: false },
    ]);
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("are kept and readable while a container mounts them, and removed after it", async () => {
    const steady = await runPod(node, { name: "steady" });
    await startContainer(node, steady, { name: "app", image: library("app:1") });
    const pod = await runPod(node, { name: "with-volume" });
    const { id } = await startContainer(node, pod, {
      name: "app",
      image: library("app:1"),
      mounts: [{ container_path: "/model", image: { image: model }, readonly: true }],
    });
    await ripen(node, ...all);
    const { report } = await gc(node, ...all);
    expect(removedImages(report)).toEqual([library("other:1")]);
    const { kept } = await planImages(node, ...all);
    expect(kept.find(({ name }) => name === model)?.reason).toMatchObject({
      code: "in-use",
      users: [{ kind: "image-volume", podName: "with-volume" }],
    });
    expect(await execInContainer(node, id, ["ls", "/model"])).toBe("data-model\n");
    await removePod(node, pod);
    const after = await gc(node, ...all);
    expect(removedImages(after.report)).toEqual([model]);
  });
});
