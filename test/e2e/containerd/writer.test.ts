// Free space on a real containerd while something else fills the disk.
import { expect, setDefaultTimeout, test } from "bun:test";
import { open } from "node:fs/promises";

import { startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import { fillDiskTo, gibibyte, mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { startNode } from "../../support/containerd/node.ts";
import { makeKubeletPodDirectory, runPod } from "../../support/containerd/pods.ts";
import { ripen, youngAge } from "../../support/containerd/reports.ts";

setDefaultTimeout(240_000);

const crigcPercent = 25;
/** A kubelet's threshold is 5 points lower. */
const kubeletPercent = 20;
const writtenBytes = 800e6;
/** MB/s. */
const RATE = 100;

test("beside a pod in ErrImagePull the agent keeps the disk above the kubelet's threshold while 100 MB/s are written", async () => {
  await using node = await startNode("2.1", { disk: { sizeBytes: 4 * gibibyte } });
  // Together 1.2 GiB on the disk, as blobs and unpacked.
  for (const group of [1, 2, 3, 4]) await loadImages(node, unusedImages(group, 11));
  await ripen(node);
  await fillDiskTo(node.disk, 100 - crigcPercent - 2);
  makeKubeletPodDirectory(node, await runPod(node, { name: "err-image-pull" }));
  await using _ = await startAgent(
    node,
    youngAge,
    "--image-gc-high-threshold=100",
    `--eviction-hard=nodefs.available<${crigcPercent}%`,
  );
  const { path } = node.disk;
  const startPercent = availablePercent(path);
  const sampler = sampleDisk(path);
  const seconds = await writeAt(`${path}/written`, RATE * 1e6).finally(sampler.stop);
  const end = sampler.figures();
  const { capacityBytes } = readDisk(path);
  const withoutAgent = startPercent - (100 * writtenBytes) / capacityBytes;
  const left = (await imageTags(node)).length - 1;
  console.info(
    `${RATE} MB/s for ${seconds.toFixed(1)} s: at least ${end.lowestPercent.toFixed(1)}% available, ` +
      `${end.longestMs.toFixed(0)} ms at most below ${kubeletPercent}%, ${left} of 44 images left`,
  );
  expect(withoutAgent).toBeLessThan(kubeletPercent - 5);
  expect(end.longestMs).toBeLessThan(1_000);
  // The claim holds only while there are candidates.
  expect(left).toBeWithin(4, 44);
});

/** Of 8 to 20 MiB each. */
function unusedImages(group: number, count: number) {
  return Array.from({ length: count }, (_, index) => {
    const seed = `unused-${group}-${index}`;
    const sizeBytes = (8 + ((index * 5) % 13)) * mebibyte;
    return { names: [library(`${seed}:1`)], layers: [{ seed, sizeBytes }] };
  });
}

function availablePercent(path: string): number {
  return 100 - readDisk(path).usedPercent;
}

/** Reads the disk every 50 ms. */
function sampleDisk(path: string) {
  let lowestPercent = 100;
  let longestMs = 0;
  let belowSince: number | undefined;
  const sample = (): void => {
    const percent = availablePercent(path);
    const now = performance.now();
    if (belowSince !== undefined) longestMs = Math.max(longestMs, now - belowSince);
    belowSince = percent < kubeletPercent ? (belowSince ?? now) : undefined;
    lowestPercent = Math.min(lowestPercent, percent);
  };
  const timer = setInterval(sample, 50);
  return { stop: () => clearInterval(timer), figures: () => ({ lowestPercent, longestMs }) };
}

/** Writes `writtenBytes`, never faster than `bytesPerSecond`; answers with the seconds it took. */
async function writeAt(file: string, bytesPerSecond: number): Promise<number> {
  const handle = await open(file, "w");
  const startedAt = performance.now();
  try {
    const chunk = Buffer.alloc(bytesPerSecond / 20, 1);
    for (let written = 0; written < writtenBytes; written += chunk.length) {
      const chunkAt = performance.now();
      await handle.write(chunk);
      await Bun.sleep(Math.max(0, 50 - (performance.now() - chunkAt)));
    }
    return (performance.now() - startedAt) / 1_000;
  } finally {
    await handle.close();
  }
}
