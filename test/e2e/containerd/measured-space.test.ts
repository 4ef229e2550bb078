import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";

// What a pass frees is what the file system says: images that share layers, runtimes that are late, others that write.
import { library } from "../../support/containerd/archive.ts";
import {
  type Disk,
  type DiskUse,
  mebibyte,
  readDisk,
  takeBytes,
} from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, type NodeOptions, startNode } from "../../support/containerd/node.ts";
import {
  gc,
  type GcReport,
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

let node: ContainerdNode | undefined;

afterEach(async () => {
  await node?.stop();
  node = undefined;
});

const start = async (options: NodeOptions = {}): Promise<ContainerdNode> => {
  node = await startNode("1.7", { disk: { sizeBytes: 512 * mebibyte }, ...options });
  return node;
};

describe("a pass under containerd 1.7 frees exactly enough", () => {
  test("if the sizes add up to far more than is freed: images on one large layer", async () => {
    const made = await start({ disk: { sizeBytes: 320 * mebibyte } });
    await loadImages(made, [lone("alone-1", 2), lone("alone-2", 2), lone("alone-3", 2)]);
    await gc(made);
    const shared = (i: number) => ({
      names: [library(`shared:${i}`)],
      layers: [layer("base", 40), layer(`shared-${i}`, 4)],
    });
    await fill(made, 91, (i) => [1, 2, 3, 4].map((j) => shared(4 * i + j)));
    await ripen(made);
    const { report, before } = await passToTarget(made, { lastBytes: 8 * mebibyte });
    // By reported sizes it would have ended after as few images as those.
    const wanted = 0.2 * before.capacityBytes - before.availableBytes;
    const bySum = 3 + Math.ceil(wanted / (46 * mebibyte));
    expect(removedImages(report).length).toBeGreaterThan(bySum + 1);
    expect(report.images!.reportedFreedBytes).toBeGreaterThan(
      3 * report.images!.measuredFreedBytes,
    );
    // Three removals had shown that the runtime frees at once: nothing was waited for.
    expect(report.tookMs).toBeLessThan(5_000);
  });

  test("if the sizes add up to far less than is freed: layers that are compressed", async () => {
    const made = await start();
    const mixed = (i: number) => ({
      names: [library(`mixed:${i}`)],
      layers: [{ ...layer(`mixed-${i}`, 24), content: "mixed" as const }],
    });
    await fill(made, 90, (i) => [mixed(i)]);
    const { candidates } = await ripen(made);
    const { report, before } = await passToTarget(made, { lastBytes: 33 * mebibyte });
    const wanted = 0.2 * before.capacityBytes - before.availableBytes;
    // Each frees its compressed third and the whole.
    const bySizes = wanted / (candidates[0]?.sizeBytes ?? 1);
    expect(removedImages(report).length).toBeLessThan(bySizes / 2);
  });
});

describe("a pass under containerd 1.7", () => {
  test("frees only what was missing when it began, while another program writes", async () => {
    const made = await start();
    await fill(made, 88, (i) => [lone(`image-${i}`, 12)]);
    await ripen(made);
    const before = readDisk(made.disk.path);
    const writer = keepWriting(made.disk);
    const { exitCode, report } = await gc(made, youngAge, "--removal-interval=300ms");
    await writer.stop();
    expect({ exitCode, end: report.images?.end }).toEqual({
      exitCode: 0,
      end: "own-gain-reached",
    });
    expect(writer.wroteBytes()).toBeGreaterThan(8 * mebibyte);
    const wanted = 0.2 * before.capacityBytes - before.availableBytes;
    // No image more than it takes to gain that much.
    expect(removedImages(report)).toHaveLength(Math.ceil(wanted / (24 * mebibyte)));
    expect(report.images!.availableAfterBytes).toBeLessThan(0.2 * before.capacityBytes);
  });
});

/** Loads batch after batch until the disk is that full. */
async function fill(
  made: ContainerdNode,
  percent: number,
  batch: (number: number) => Parameters<typeof loadImages>[1],
): Promise<void> {
  for (let i = 1; readDisk(made.disk.path).usedPercent < percent; i += 1)
    await loadImages(made, batch(i));
}

/**
 * One pass, which has to end between the low threshold and that less the last image: never short, never an image too
 * many. `lastBytes`: what an image of this test takes on the disk.
 */
async function passToTarget(
  made: ContainerdNode,
  { lastBytes }: { readonly lastBytes: number },
): Promise<{ readonly report: GcReport; readonly before: DiskUse }> {
  const before = readDisk(made.disk.path);
  const { exitCode, report } = await gc(made, youngAge);
  const after = readDisk(made.disk.path);
  expect({ exitCode, end: report.images?.end }).toEqual({ exitCode: 0, end: "target-reached" });
  const target = 0.2 * before.capacityBytes;
  // Bookkeeping of the runtime and of the collector itself moves a little, too.
  expect(after.availableBytes).toBeWithin(target - mebibyte, target + lastBytes + mebibyte);
  const gained = after.availableBytes - before.availableBytes;
  expect(report.images!.measuredFreedBytes).toBeWithin(gained - mebibyte, gained + mebibyte);
  return { report, before };
}

/** Another program that takes 2 MiB each 100 ms. */
function keepWriting(disk: Disk) {
  const asked = new AbortController();
  let files = 0;
  const writing = (async () => {
    for (; !asked.signal.aborted; files += 1) {
      await takeBytes(`${disk.path}/other-${files}`, 2 * mebibyte);
      await Bun.sleep(100);
    }
  })();
  return {
    wroteBytes: () => files * 2 * mebibyte,
    stop: async () => {
      asked.abort();
      await writing;
    },
  };
}
