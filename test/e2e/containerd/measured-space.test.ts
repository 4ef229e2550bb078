// What a pass frees is what the file system says: images that share layers, sizes that lie, others that write.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { type DiskUse, mebibyte, readDisk, takeBytes } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  type Document,
  gc,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";

setDefaultTimeout(180_000);

const layer = (seed: string, sizeMib: number) => ({ seed, sizeBytes: sizeMib * mebibyte });
/** One layer of its own, which takes twice its size. */
const lone = (name: string, sizeMib: number) => ({
  names: [library(`${name}:1`)],
  layers: [layer(name, sizeMib)],
});
const nodeOf = (sizeMib: number): Promise<ContainerdNode> =>
  startNode("1.7", { disk: { sizeBytes: sizeMib * mebibyte } });
const missing = ({ capacityBytes, availableBytes }: DiskUse): number =>
  0.2 * capacityBytes - availableBytes;

describe("a pass under containerd 1.7 frees exactly enough", () => {
  test("if the sizes add up to far more than is freed: images on one large layer", async () => {
    await using node = await nodeOf(320);
    await loadImages(node, [lone("alone-1", 2), lone("alone-2", 2), lone("alone-3", 2)]);
    await gc(node);
    const shared = (i: number) => ({
      names: [library(`shared:${i}`)],
      layers: [layer("base", 40), layer(`shared-${i}`, 4)],
    });
    await fill(node, 91, (i) => [1, 2, 3, 4].map((j) => shared(4 * i + j)));
    await ripen(node);
    const { report, before } = await passToTarget(node, 8 * mebibyte);
    // By reported sizes it would have ended after as few images as those.
    const bySum = 3 + Math.ceil(missing(before) / (46 * mebibyte));
    expect(removedImages(report).length).toBeGreaterThan(bySum + 1);
    const { reportedFreedBytes, measuredFreedBytes } = report.images;
    expect(reportedFreedBytes).toBeGreaterThan(3 * measuredFreedBytes);
    // Three removals had shown that the runtime frees at once: nothing was waited for.
    expect(report.tookMs).toBeLessThan(5_000);
  });

  test("if the sizes add up to far less than is freed: layers that are compressed", async () => {
    await using node = await nodeOf(512);
    const mixed = (i: number) => ({
      names: [library(`mixed:${i}`)],
      layers: [{ ...layer(`mixed-${i}`, 24), content: "mixed" as const }],
    });
    await fill(node, 90, (i) => [mixed(i)]);
    const { candidates } = await ripen(node);
    const { report, before } = await passToTarget(node, 33 * mebibyte);
    // Each frees its compressed third and the whole.
    const bySizes = missing(before) / candidates[0].sizeBytes;
    expect(removedImages(report).length).toBeLessThan(bySizes / 2);
  });
});

test("a pass under containerd 1.7 frees only what was missing when it began, while another program writes", async () => {
  await using node = await nodeOf(512);
  await fill(node, 88, (i) => [lone(`image-${i}`, 12)]);
  await ripen(node);
  const before = readDisk(node.disk.path);
  const pass = gc(node, youngAge, "--removal-interval=300ms");
  const over = new AbortController();
  void pass.finally(() => over.abort());
  let writtenMib = 0;
  for (; !over.signal.aborted; writtenMib += 2) {
    await takeBytes(`${node.disk.path}/other-${writtenMib}`, 2 * mebibyte);
    await Bun.sleep(100);
  }
  const { exitCode, report } = await pass;
  expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "own-gain-reached" });
  expect(writtenMib).toBeGreaterThan(8);
  // No image more than it takes to gain what was missing.
  const needed = Math.ceil(missing(before) / (24 * mebibyte));
  expect(removedImages(report)).toHaveLength(needed);
  expect(report.images.availableAfterBytes).toBeLessThan(0.2 * before.capacityBytes);
});

/** Loads batch after batch until the disk is that full. */
async function fill(
  node: ContainerdNode,
  percent: number,
  batch: (number: number) => Parameters<typeof loadImages>[1],
): Promise<void> {
  for (let i = 1; readDisk(node.disk.path).usedPercent < percent; i += 1)
    await loadImages(node, batch(i));
}

/**
 * One pass, which has to end between the low threshold and that less the last image: never short, never an image too
 * many. `lastBytes`: what an image of this test takes on the disk.
 */
async function passToTarget(
  node: ContainerdNode,
  lastBytes: number,
): Promise<{ readonly report: Document; readonly before: DiskUse }> {
  const before = readDisk(node.disk.path);
  const { exitCode, report } = await gc(node, youngAge);
  const after = readDisk(node.disk.path);
  expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "target-reached" });
  const target = 0.2 * before.capacityBytes;
  // Bookkeeping of the runtime and of the collector itself moves a little, too.
  expect(after.availableBytes).toBeWithin(target - mebibyte, target + lastBytes + mebibyte);
  const gained = after.availableBytes - before.availableBytes;
  expect(report.images.measuredFreedBytes).toBeWithin(gained - mebibyte, gained + mebibyte);
  return { report, before };
}
