import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { existsSync, mkdirSync } from "node:fs";

import {
  pressureOnly,
  type RunningAgent,
  shortPeriods,
  startAgent,
} from "../../support/containerd/agent.ts";
// Disk pressure on real file systems: what is reclaimed, how far, how soon, and where nothing is.
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
import { type ContainerdNode, type NodeOptions, startNode } from "../../support/containerd/node.ts";
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

const image = (number: number, sizeMib = 10, files = 1) => ({
  names: [library(`unused:${number}`)],
  layers: [{ seed: `unused-${number}`, sizeBytes: sizeMib * mebibyte, files }],
});
const images = (count: number, sizeMib = 10, files = 1) =>
  Array.from({ length: count }, (_, index) => image(index + 1, sizeMib, files));

/** No collection by thresholds, so that what happens is the pressure's doing. */
const noGc = "--image-gc-high-threshold=100";

describe("a disk that something else fills to 97 percent, under the agent for more than a minute", () => {
  const nodes: ContainerdNode[] = [];
  const agents: RunningAgent[] = [];
  const startedAt = performance.now();
  /** Longer than the longest pause of a check for pressure, and than the default period over containers. */
  const minutes = 1.2;
  let before: readonly (readonly string[])[] = [];

  beforeAll(async () => {
    // One with every default, one whose loops come far more often.
    for (const flags of [[], [...shortPeriods, youngAge]]) {
      const node = await startNode("1.7", { disk: { sizeBytes: 512 * mebibyte } });
      nodes.push(node);
      await loadImages(node, [{ names: [library("app:1")] }, ...images(4, 4)]);
      const pod = await runPod(node, { name: "web" });
      await startContainer(node, pod, { name: "app", image: library("app:1") });
      await fillDiskTo(node.disk, 97);
      await until("the runtime knows what its images take", 10_000, async () => {
        const { image_filesystems } = await node.cri.call("ImageFsInfo", {});
        return Number(image_filesystems[0]?.used_bytes?.value ?? 0) > 16 * mebibyte;
      });
      agents.push(await startAgent(node, ...flags));
    }
    before = await Promise.all(nodes.map(imageTags));
  });

  afterAll(async () => {
    for (const agent of agents) await agent.stop();
    for (const node of nodes) await node.stop();
  });

  onOneDisk();
  onDisksOfTheirOwn();

  test("costs no image, and the agent reports once what fills the disk", async () => {
    const left = minutes * 60_000 - (performance.now() - startedAt);
    if (left > 0) await Bun.sleep(left);
    for (const [index, agent] of agents.entries()) {
      expect(agent.exitCode()).toBeNull();
      expect(await imageTags(nodes[index]!)).toEqual(before[index]!);
      const { events, underPressure, lastPasses } = await agent.status();
      expect(underPressure).toBe(true);
      expect(lastPasses.map(({ passKind }) => passKind)).toContain("pressure");
      const reasons = events.map(({ reason }) => reason);
      expect(reasons.filter((reason) => reason === "ImageGCFutile")).toHaveLength(1);
      expect(reasons).toContain("EvictionThresholdMet");
      // With its message, should there be one.
      const expected = ["EvictionThresholdMet", "ImageGCFutile"];
      expect(events.filter(({ reason }) => !expected.includes(reason))).toEqual([]);
      expectThresholdsSaidOnce(agent);
      expect(agent.said().match(/other data (?:at least )?[\d.]+ MiB/g)?.length).toBe(1);
    }
  });
});

function onOneDisk(): void {
  describe("under pressure on the one disk of a node", () => {
    const { start, running } = ownNode();

    test("containers are removed first, then images as far as needed, at once", async () => {
      const node = await start({ disk: { sizeBytes: 512 * mebibyte } });
      const pod = await prepare(node, images(8, 12));
      const agent = await running(
        noGc,
        ...pressureOnly,
        youngAge,
        "--pod-source=none",
        "--eviction-hard=nodefs.available<15%",
        "--eviction-minimum-reclaim=nodefs.available=5%",
      );
      await makeDead(node, pod);
      const countBefore = (await imageTags(node)).length;
      await fillDiskTo(node.disk, 89);
      const crossedAt = performance.now();
      await until("the first image is gone", 10_000, async () => {
        return (await imageTags(node)).length < countBefore;
      });
      const dead = (await takeInventory(node)).containers.filter(({ name }) => name === "job");
      expect(dead.map(({ attempt }) => attempt)).toEqual([1]);
      // One period of 500 ms, and the pass itself.
      expect(performance.now() - crossedAt).toBeLessThan(2_000);
      await until(
        "the pressure is over",
        10_000,
        async () => (await agent.status()).pressure.length === 0,
      );
      const { availableBytes, capacityBytes } = readDisk(node.disk.path);
      const relieved = 0.2 * capacityBytes;
      expect(availableBytes).toBeWithin(relieved - mebibyte, relieved + 25 * mebibyte);
      expect((await imageTags(node)).length).toBeWithin(5, countBefore);
      expectThresholdsSaidOnce(agent);
    });

    test("no image is removed for inodes that other files take, and the agent says so", async () => {
      const node = await start({ disk: { sizeBytes: 512 * mebibyte, inodes: 4_096 } });
      await prepare(node, images(4, 2, 20));
      takeInodes(node.disk, 80);
      const before = await imageTags(node);
      const agent = await running(
        noGc,
        ...pressureOnly,
        youngAge,
        "--eviction-hard=nodefs.inodesFree<10%",
      );
      const message = await until("it is said", 10_000, async () => {
        const { events } = await agent.status();
        return events.find(({ reason }) => reason === "ImageGCFutile")?.message;
      });
      expect(message).toMatch(
        /has \d\d of 4096 inodes free, and images take at most \d\d\d of the rest/,
      );
      await Bun.sleep(2_000);
      expect(await imageTags(node)).toEqual(before);
      expect(agent.said().match(/ImageGCFutile/g)).toHaveLength(1);
    });

    test("gc frees inodes down to the low threshold", async () => {
      const node = await start({ disk: { sizeBytes: 512 * mebibyte, inodes: 4_096 } });
      await prepare(node, images(6, 2, 200));
      const { inodes } = readDisk(node.disk.path);
      takeInodes(node.disk, Math.floor(inodes * 0.1));
      const { exitCode, report } = await gc(
        node,
        youngAge,
        "--image-gc-inode-high-threshold=85",
        "--image-gc-inode-low-threshold=80",
      );
      expect({ exitCode, end: report.images?.end }).toEqual({ exitCode: 0, end: "target-reached" });
      // A tenth of 4096 was missing, and each image takes 200 for its files and some for itself.
      expect(removedImages(report)).toHaveLength(2);
      expect(readDisk(node.disk.path).inodesFree / inodes).toBeWithin(0.2, 0.25);
    });
  });
}

function onDisksOfTheirOwn(): void {
  describe("with images on a disk of their own", () => {
    const { start, running } = ownNode();
    const flags = [
      noGc,
      ...pressureOnly,
      "--pod-source=kubelet-dir",
      "--eviction-hard=nodefs.available<15%,imagefs.available<15%",
    ] as const;

    test("pressure on the node's disk removes orphaned logs and nothing else", async () => {
      const node = await start(twoDisks);
      const { orphan, pod } = await prepareForLogs(node);
      const agent = await running(...flags, youngAge);
      await makeDead(node, pod);
      const before = await takeInventory(node);
      await fillDiskTo(node.disk, 90);
      await until("the logs are gone", 10_000, () => !existsSync(orphan));
      await until(
        "the pressure is over",
        10_000,
        async () => (await agent.status()).pressure.length === 0,
      );
      expect(readDisk(node.disk.path).usedPercent).toBeLessThan(85);
      expect(await takeInventory(node)).toEqual(before);
    });

    test("pressure on the node's disk removes nothing with compat kubelet", async () => {
      const node = await start(twoDisks);
      const { orphan, pod } = await prepareForLogs(node);
      const agent = await running(...flags, "--compat=kubelet", "--minimum-image-ttl-duration=0s");
      await makeDead(node, pod);
      const before = await takeInventory(node);
      await fillDiskTo(node.disk, 90);
      await until("the pressure is seen", 10_000, async () =>
        (await agent.status()).pressure.some(({ due }) => due),
      );
      await Bun.sleep(3_000);
      expect(existsSync(orphan)).toBe(true);
      expect(await takeInventory(node)).toEqual(before);
    });

    test("pressure on the images' disk removes images as far as needed", async () => {
      const node = await start(twoDisks);
      await prepareForLogs(node);
      const agent = await running(...flags, youngAge);
      const before = await imageTags(node);
      await fillDiskTo(node.imageDisk, 90);
      await until("an image is gone", 10_000, async () => {
        return (await imageTags(node)).length < before.length;
      });
      await until(
        "the pressure is over",
        10_000,
        async () => (await agent.status()).pressure.length === 0,
      );
      const { availableBytes, capacityBytes } = readDisk(node.imageDisk.path);
      const relieved = 0.15 * capacityBytes;
      expect(availableBytes).toBeWithin(relieved, relieved + 25 * mebibyte);
    });
  });
}

const twoDisks: NodeOptions = {
  disk: { sizeBytes: 256 * mebibyte },
  imageDisk: { sizeBytes: 384 * mebibyte },
};

/** Each signal once, however many checks there were. */
function expectThresholdsSaidOnce(agent: RunningAgent): void {
  const said = [...agent.said().matchAll(/Disk pressure: (\S+) at .*EvictionThresholdMet/g)];
  const signals = said.map(([, signal]) => signal);
  expect(signals.length).toBeGreaterThan(0);
  expect(signals).toEqual([...new Set(signals)]);
}

/** A node and an agent for each test. */
function ownNode() {
  let node: ContainerdNode | undefined;
  let agent: RunningAgent | undefined;
  afterEach(async () => {
    await agent?.stop();
    await node?.stop();
    [agent, node] = [undefined, undefined];
  });
  return {
    start: async (options: NodeOptions): Promise<ContainerdNode> => {
      node = await startNode("1.7", options);
      return node;
    },
    running: async (...flags: readonly string[]): Promise<RunningAgent> => {
      agent = await startAgent(node!, ...flags);
      return agent;
    },
  };
}

/** The images, a pod that runs, and a memory in which all of it is old enough. */
async function prepare(node: ContainerdNode, unused: ReturnType<typeof images>): Promise<Pod> {
  await loadImages(node, [{ names: [library("app:1")] }, ...unused]);
  const pod = await runPod(node, { name: "web" });
  await startContainer(node, pod, { name: "app", image: library("app:1") });
  await ripen(node);
  return pod;
}

/** Images, a pod that lives, and 20 MiB of logs of one that is gone. */
async function prepareForLogs(node: ContainerdNode) {
  const pod = await prepare(node, images(5, 12));
  makeKubeletPodDirectory(node, pod);
  const orphan = `${node.podLogsDirectory}/default_gone_0f6c1d5e-0000-4000-8000-000000000001`;
  mkdirSync(`${orphan}/app`, { recursive: true });
  await takeBytes(`${orphan}/app/0.log`, 20 * mebibyte);
  return { pod, orphan };
}

/** Two dead instances where one is kept: the next pass over containers would take one. */
async function makeDead(node: ContainerdNode, pod: Pod): Promise<void> {
  for (const attempt of [0, 1])
    await runToEnd(node, pod, { name: "job", image: library("app:1"), attempt });
}
