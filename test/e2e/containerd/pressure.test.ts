// Disk pressure on real file systems: what is reclaimed, how far and how soon.
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync } from "node:fs";

import { pressureOnly, type RunningAgent, startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import {
  fillDiskTo,
  mebibyte,
  readDisk,
  takeBytes,
  takeInodes,
} from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  makeKubeletPodDirectory,
  type Pod,
  runPod,
  runToEnd,
  startContainer,
} from "../../support/containerd/pods.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(240_000);

/** No collection by thresholds, so that what happens is the pressure's doing. */
const flags = ["--image-gc-high-threshold=100", ...pressureOnly, youngAge] as const;

test("gc frees inodes up to an eviction threshold and its minimum reclaim", async () => {
  const disk = { sizeBytes: 512 * mebibyte, inodes: 4_096 };
  await using node = await startNode("1.7", { disk });
  await prepare(node, 6, 2, 200);
  const { inodes } = readDisk(node.disk.path);
  takeInodes(node.disk, Math.floor(inodes * 0.1));
  const thresholds = [
    "--eviction-hard=imagefs.inodesFree<15%",
    "--eviction-minimum-reclaim=imagefs.inodesFree=5%",
  ];
  const { exitCode, report } = await gc(node, youngAge, ...thresholds);
  expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "target-reached" });
  // A tenth of 4096 was missing, and each image takes 200 for its files and some for itself.
  expect(removedImages(report)).toHaveLength(2);
  expect(readDisk(node.disk.path).inodesFree / inodes).toBeWithin(0.2, 0.25);
});

test("with images on a disk of their own, pressure on the node's disk removes orphaned logs alone, and on the images' disk images", async () => {
  await using node = await startNode("1.7", {
    disk: { sizeBytes: 256 * mebibyte },
    imageDisk: { sizeBytes: 384 * mebibyte },
  });
  const pod = await prepare(node, 5, 12);
  makeKubeletPodDirectory(node, pod);
  const orphan = `${node.podLogsDirectory}/default_gone_0f6c1d5e-0000-4000-8000-000000000001`;
  mkdirSync(`${orphan}/app`, { recursive: true });
  await takeBytes(`${orphan}/app/0.log`, 20 * mebibyte);
  const thresholds = "--eviction-hard=nodefs.available<15%,imagefs.available<15%";
  await using agent = await startAgent(node, ...flags, "--pod-source=kubelet-dir", thresholds);
  await makeDead(node, pod);
  const before = await takeInventory(node);
  await fillDiskTo(node.disk, 90);
  // Its pod has to be absent from two passes ten seconds apart.
  await until("the logs are gone", 20_000, () => !existsSync(orphan));
  await pressureOver(agent);
  expect(readDisk(node.disk.path).usedPercent).toBeLessThan(85);
  expect(await takeInventory(node)).toEqual(before);

  const tags = await imageTags(node);
  await fillDiskTo(node.imageDisk, 90);
  await until("an image is gone", 10_000, async () => {
    return (await imageTags(node)).length < tags.length;
  });
  await pressureOver(agent);
  const { availableBytes, capacityBytes } = readDisk(node.imageDisk.path);
  const relieved = 0.15 * capacityBytes;
  expect(availableBytes).toBeWithin(relieved, relieved + 25 * mebibyte);
});

const pressureOver = (agent: RunningAgent) =>
  until("the pressure is over", 10_000, async () => (await agent.status()).pressure.length === 0);

/** So many unused images, a pod that runs, and a memory in which all of it is old enough. */
async function prepare(
  node: ContainerdNode,
  count: number,
  sizeMib: number,
  files = 1,
): Promise<Pod> {
  const unused = Array.from({ length: count }, (_, index) => ({
    names: [library(`unused:${index}`)],
    layers: [{ seed: `unused-${index}`, sizeBytes: sizeMib * mebibyte, files }],
  }));
  await loadImages(node, [{ names: [library("app:1")] }, ...unused]);
  const pod = await runPod(node, { name: "web" });
  await startContainer(node, pod, { name: "app", image: library("app:1") });
  await ripen(node);
  return pod;
}

/** Two dead instances where one is kept: the next pass over containers would take one. */
async function makeDead(node: ContainerdNode, pod: Pod): Promise<void> {
  for (const attempt of [0, 1])
    await runToEnd(node, pod, { name: "job", image: library("app:1"), attempt });
}
