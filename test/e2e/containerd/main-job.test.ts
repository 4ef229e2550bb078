// The main job on real runtimes: a disk full of images, and what one pass leaves of them.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages, pinnedLabel } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  createContainer,
  execInContainer,
  type PodContainer,
  removePod,
  runPod,
  runToEnd,
  startContainer,
} from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  type Document,
  gc,
  keepCodes,
  namesOf,
  planImages,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";

setDefaultTimeout(120_000);

const ownMib = 12;
const baseMib = 12;
const familySize = 4;

/** Images of one family lie on one layer; each has a layer of its own that takes twice its size. */
const member = (family: string, number: number) => ({
  names: [library(`${family}:${number}`)],
  layers: [layer(`${family}-base`, baseMib), layer(`${family}-${number}`, ownMib)],
});
/** The own layer of each, twice; the layer below the red ones goes with the last of them. No other family goes whole. */
const freedBy = (removed: readonly string[]) =>
  2 * mebibyte * (removed.length * ownMib + (isRedGone(removed) ? baseMib : 0));
const isRedGone = (removed: readonly string[]) =>
  family("red").every(({ names: [name] }) => removed.includes(name!));
const layer = (seed: string, sizeMib: number) => ({ seed, sizeBytes: sizeMib * mebibyte });
const family = (name: string) =>
  Array.from({ length: familySize }, (_, index) => member(name, index + 1));

const inUse = ["running", "exited", "created", "by-name"].map((name) => library(`${name}:1`));

describe.each([...releases])("a full disk under containerd %s", (release) => {
  test("over 85 percent is brought to 80 or below by as few images as needed, none of them young, in use, pinned or the sandbox image", async () => {
    await using node = await startNode(release, { disk: { sizeBytes: 512 * mebibyte } });
    // The largest and oldest of all: by order alone they would go first.
    const protectedImages = inUse.map((name) => [name, "in-use"] as const);
    const big = (name: string) => ({ names: [name], layers: [layer("in-use", 16)] });
    await loadImages(node, inUse.map(big));
    // 1.6 knows no pins.
    const pins = release === "1.6" ? [] : ([[library("pinned:1"), "pinned"]] as const);
    for (const [name] of pins) await loadImages(node, [big(name)], { labels: pinnedLabel });
    const sandboxRule = release === "1.6" ? "sandbox-image" : "pinned";
    const ofSandbox = [node.sandboxImage, sandboxRule] as const;
    const kept = Object.fromEntries([...protectedImages, ...pins, ofSandbox]);
    const untouchable = Object.keys(kept);
    await loadImages(node, family("red"));
    const running = await makePods(node);

    const first = await gc(node);
    expect([first.exitCode, removedImages(first.report)]).toEqual([0, []]);
    await useOnce(node, library("red:2"));
    await fillWithImages(node, 92);
    const tagsBefore = await imageTags(node);
    const young = await gc(node);
    expect(young.exitCode).toBe(4);
    const reasons = young.report.events.map(({ reason }: Document) => reason);
    expect(reasons).toEqual(["FreeDiskSpaceFailed"]);
    const codes = new Set(Object.values(keepCodes(young.report.plan.images)));
    expect(codes).toEqual(new Set([...Object.values(kept), "too-young"]));
    expect(await imageTags(node)).toEqual(tagsBefore);

    await useOnce(node, library("green:2"));
    const names = namesOf((await ripen(node)).candidates);
    // Seen first and never used, then what was used before the others were seen; what was used last goes last.
    expect(names.slice(0, 3).toSorted()).toEqual(["red:1", "red:3", "red:4"].map(library));
    expect(names[3]).toBe(library("red:2"));
    expect(names.at(-1)).toBe(library("green:2"));
    expect(names.filter((name) => untouchable.includes(name))).toEqual([]);

    const before = readDisk(node.disk.path);
    expect(before.usedPercent).toBeGreaterThan(85);
    const { exitCode, report } = await gc(node, youngAge);
    const after = readDisk(node.disk.path);
    expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "target-reached" });
    expect(after.usedPercent).toBeLessThanOrEqual(80);
    const removed = removedImages(report);
    expect(removed.length).toBeGreaterThan(1);
    expect(names.slice(0, removed.length)).toEqual([...removed]);
    const left = await imageTags(node);
    expect(tagsBefore.filter((tag) => !left.includes(tag))).toEqual(removed.toSorted());
    // The last removal was needed.
    const freedBytes = freedBy(removed);
    const lastBytes = freedBytes - freedBy(removed.slice(0, -1));
    expect(after.availableBytes - lastBytes).toBeLessThan(0.2 * after.capacityBytes);
    for (const measured of [
      report.images.measuredFreedBytes,
      after.availableBytes - before.availableBytes,
    ])
      expect(measured).toBeWithin(freedBytes - mebibyte, freedBytes + mebibyte);

    expect(left).toEqual(expect.arrayContaining(untouchable));
    for (const { id } of running)
      expect(await execInContainer(node, id, ["echo", "alive"])).toBe("alive\n");
    const { containers } = await takeInventory(node);
    expect(containers.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
      "by-name CONTAINER_RUNNING",
      "created CONTAINER_CREATED",
      "exited CONTAINER_EXITED",
      "running CONTAINER_RUNNING",
    ]);
    const now = keepCodes(await planImages(node, youngAge));
    expect(now).toMatchObject(kept);
  });
});

/** Containers in every state, one of them created from the image's name; answers with those that run. */
async function makePods(node: ContainerdNode): Promise<readonly PodContainer[]> {
  const pod = await runPod(node, { name: "web" });
  const image = (name: string) => ({ name, image: library(`${name}:1`) });
  const running = [
    await startContainer(node, pod, image("running")),
    await startContainer(node, pod, { ...image("by-name"), byName: true }),
  ];
  await runToEnd(node, pod, image("exited"));
  await createContainer(node, pod, image("created"));
  return running;
}

/** A pod uses it while a pass looks, and is gone before the next one. */
async function useOnce(node: ContainerdNode, image: string): Promise<void> {
  const batch = await runPod(node, { name: "batch" });
  await runToEnd(node, batch, { name: "job", image });
  await gc(node, "--containers");
  await removePod(node, batch);
}

/** Family by family, then image by image, until the disk is as full as that. */
async function fillWithImages(node: ContainerdNode, percent: number): Promise<void> {
  const used = () => readDisk(node.disk.path).usedPercent;
  const familyPercent = (100 * 150 * mebibyte) / readDisk(node.disk.path).capacityBytes;
  await loadImages(node, family("green"));
  for (let i = 1; used() + familyPercent < percent; i += 1)
    await loadImages(node, family(`blue-${i}`));
  for (let i = 1; used() < percent; i += 1) await loadImages(node, [member("single", i)]);
}
