// What gc frees is what the disk says: shared layers, sizes that lie, a runtime that frees late, images that stay.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { readDisk } from "../../support/containerd/disk.ts";
import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { crio137, type Traits } from "../../support/fake-runtime/traits.ts";
import { diskObstacle, layer, MiB, type SmallDisk, smallDisk } from "./disk.ts";
import { type Json, type NodeOptions, startNode } from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s"];
const capacityBytes = 100 * MiB;

/** Images of one layer of so many MiB. */
const images = (count: number, mebibytes: number): readonly ImageDescription[] =>
  Array.from({ length: count }, (_, index) => ({
    id: imageIdOf(`i${index}`),
    repoTags: [`r.example/i${index}:1`],
    layers: [layer(`i${index}`, mebibytes)],
  }));

/** Images whose layers lie on a disk of their own. */
async function onDisk(
  list: readonly ImageDescription[],
  change: Partial<NodeOptions> & { readonly releaseDelayMs?: number } = {},
) {
  const disk = await smallDisk(capacityBytes);
  const { releaseDelayMs, ...options } = change;
  const store = { directory: join(disk.directory, "store"), releaseDelayMs };
  const it = await startNode({ node: { images: list }, store, flags, ...options });
  return {
    disk,
    it,
    [Symbol.asyncDispose]: async () => {
      await it[Symbol.asyncDispose]();
      await disk[Symbol.asyncDispose]();
    },
  };
}

/** Fifteen images of 6 MiB, and another file that takes all the rest. */
async function onFullDisk(traits: Partial<Traits>) {
  const node = await onDisk(images(15, 6), { traits });
  const { directory } = node.disk;
  writeFileSync(join(directory, "other"), Buffer.alloc(readDisk(directory).availableBytes));
  return node;
}

const usedBytes = ({ directory }: SmallDisk): number => {
  const { capacityBytes: all, availableBytes } = readDisk(directory);
  return all - availableBytes;
};

/** At or below the low threshold, and above it with the last removed image still there: none too few, none too many. */
function expectExactlyEnough(disk: SmallDisk, report: Json, lowPercent: number): void {
  const low = (capacityBytes * lowPercent) / 100;
  const removed = report.images.items.filter((item: Json) => item.result.kind === "removed");
  expect(removed.length).toBeGreaterThan(0);
  const lastBytes = removed.at(-1).result.measuredBytes;
  expect(usedBytes(disk)).toBeLessThanOrEqual(low);
  expect(usedBytes(disk) + lastBytes).toBeGreaterThan(low);
  expect(report.images.end).toBe("target-reached");
  const freed = removed.reduce((sum: number, item: Json) => sum + item.result.measuredBytes, 0);
  expect(report.images.measuredFreedBytes).toBe(freed);
  expect(report.images.availableAfterBytes).toBe(capacityBytes - usedBytes(disk));
}

const thresholds = ["--image-gc-high-threshold=85", "--image-gc-low-threshold=70"];

describe.skipIf(diskObstacle !== null)("gc on a disk of its own", () => {
  test("meets an eviction threshold below the high threshold with no image too many, as plan says", async () => {
    await using node = await onDisk(images(8, 10));
    const { disk, it } = node;
    const pressed = ["--eviction-hard=imagefs.available<35%", "--image-gc-high-threshold=95"];
    const plan = await it.json(["plan", ...pressed]);
    const report = await it.json(["gc", ...pressed]);
    expect(plan.images.targets).toMatchObject([
      { trigger: { code: "pressure", signal: "imagefs.available" } },
    ]);
    expect(plan.images.usage[0].evictions).toMatchObject([{ usedPercent: 65, met: true }]);
    expectExactlyEnough(disk, report, 65);
    expect(it.removedImages()).toHaveLength(2);
    expect((await it.json(["plan", ...pressed, "--compat=kubelet"])).images.targets).toEqual([]);
  });

  test("frees until as much is available as --free asks for, whatever the thresholds, or exits 4", async () => {
    await using node = await onDisk(images(8, 10));
    const { disk, it } = node;
    const plan = await it.json(["plan", "--free=45Mi"]);
    expect(plan.images.targets).toMatchObject([{ trigger: { code: "free" } }]);
    expectExactlyEnough(disk, await it.json(["gc", "--free=45Mi"]), 55);
    const removed = it.removedImages().length;
    await it.json(["gc", "--free=1Ti"], 4);
    expect(it.removedImages()).toHaveLength(removed);
  });

  test("removes one image too many at most if the runtime frees space 400 ms after it answers", async () => {
    await using node = await onDisk(images(9, 10), { releaseDelayMs: 400 });
    const { disk, it } = node;
    await it.json(["gc", ...thresholds]);
    expect(usedBytes(disk)).toBeLessThanOrEqual(0.7 * capacityBytes);
    const removed = it.removedImages().length;
    expect([2, 3]).toContain(removed);
    expect((await it.json(["history"])).removals).toHaveLength(removed);
  });

  test("removes nothing on CRI-O with 0 bytes available, which would lose the images and free nothing", async () => {
    await using node = await onFullDisk(crio137);
    for (const which of [["--image-gc-low-threshold=10"], ["--all-unused"]]) {
      const { images: outcome } = await node.it.json(["gc", ...thresholds, ...which], 4);
      expect(outcome).toMatchObject({ end: "blocked", items: [] });
      expect(outcome.endText).toContain("without which CRI-O loses an image");
    }
    expect(node.it.removedImages()).toEqual([]);
  });

  test("ends after five removals that give nothing back, and says so once", async () => {
    await using node = await onFullDisk({ leavesLayersWhenFull: true });
    const { it } = node;
    const report = await it.json(["gc", ...thresholds, "--image-gc-low-threshold=10"], 4);
    expect(report.images).toMatchObject({
      end: "nothing-freed",
      measuredFreedBytes: 0,
      nothingFreed: { removals: 5, estimatedBytes: 30 * MiB, gainedBytes: 0 },
    });
    expect(report.events.map((event: Json) => event.reason)).toEqual(["NothingFreed"]);
    expect(it.removedImages()).toHaveLength(5);
  });
});
