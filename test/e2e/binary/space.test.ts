// What gc frees is what the disk says: shared layers, sizes that lie, a runtime that frees late, images that stay.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { crio137 } from "../../support/fake-runtime/traits.ts";
import { diskObstacle, layer, MiB, type SmallDisk, smallDisk } from "./disk.ts";
import { type Json, startNode, type TestNode } from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s"];
const capacityBytes = 100 * MiB;

/** An image on the disk; `reported` where the runtime's figure is another one. */
const image = (
  name: string,
  layers: ImageDescription["layers"],
  reported?: number,
): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`r.example/${name}:1`],
  layers: layers ?? [],
  ...(reported === undefined ? {} : { sizeBytes: reported }),
});
const names = (count: number, prefix: string): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** At or below the low threshold, and above it with the last removed image still there: none too few, none too many. */
function expectExactlyEnough(disk: SmallDisk, report: Json, lowPercent: number): void {
  const low = (capacityBytes * lowPercent) / 100;
  const removed = report.images.items.filter((item: Json) => item.result.kind === "removed");
  expect(removed.length).toBeGreaterThan(0);
  const lastBytes = removed.at(-1).result.measuredBytes;
  expect(disk.usedBytes()).toBeLessThanOrEqual(low);
  expect(disk.usedBytes() + lastBytes).toBeGreaterThan(low);
  expect(report.images.end).toBe("target-reached");
  const freed = removed.reduce((sum: number, item: Json) => sum + item.result.measuredBytes, 0);
  expect(report.images.measuredFreedBytes).toBe(freed);
  expect(report.images.availableAfterBytes).toBe(capacityBytes - disk.usedBytes());
}

const thresholds = ["--image-gc-high-threshold=85", "--image-gc-low-threshold=70"];
const historyOf = async (node: TestNode): Promise<readonly Json[]> =>
  (await node.json(["history"])).removals;

describe.skipIf(diskObstacle !== null)(
  "gc ends between the low threshold and the low threshold less the last image",
  () => {
    test("for an eviction threshold that is met below the high threshold, as plan and doctor say", async () => {
      await using disk = await smallDisk(capacityBytes);
      const images = names(8, "evicted").map((name) => image(name, [layer(name, 10)]));
      const store = { directory: join(disk.directory, "store") };
      await using it = await startNode({ node: { images }, store, flags });
      const pressed = ["--eviction-hard=imagefs.available<35%", "--image-gc-high-threshold=95"];
      const plan = await it.json(["plan", ...pressed]);
      const doctor = await it.json(["doctor", ...pressed]);
      const report = await it.json(["gc", ...pressed]);
      expect(plan.images.targets).toMatchObject([
        { trigger: { code: "pressure", signal: "imagefs.available" } },
      ]);
      expect(plan.images.usage[0].evictions).toMatchObject([{ usedPercent: 65, met: true }]);
      expect(JSON.stringify(doctor)).toContain("past the eviction threshold of imagefs.available");
      expectExactlyEnough(disk, report, 65);
      expect(it.removedImages()).toHaveLength(2);
      const asKubelet = await it.json(["plan", ...pressed, "--compat=kubelet"]);
      expect(asKubelet.images.targets).toEqual([]);
    });

    test("if the runtime frees space 400 ms after it answers", async () => {
      await using disk = await smallDisk(capacityBytes);
      const images = names(9, "late").map((name) => image(name, [layer(name, 10)]));
      const store = { directory: join(disk.directory, "store"), releaseDelayMs: 400 };
      await using it = await startNode({ node: { images }, store, flags });
      const report = await it.json(["gc", ...thresholds]);
      expectExactlyEnough(disk, report, 70);
      expect(it.removedImages()).toHaveLength(2);
      expect(report.images.items.at(-1).result.settled).toBe("afterwards");
      expect(report.steps.map((step: Json) => step.name)).toContain("space");
      expect(await historyOf(it)).toHaveLength(2);
    });
  },
);

test.skipIf(diskObstacle !== null)(
  "gc on a full disk with a new ledger says how many images become removable and when, and exits with 4",
  async () => {
    await using disk = await smallDisk(capacityBytes);
    const images = names(9, "fresh").map((name) => image(name, [layer(name, 10)]));
    const store = { directory: join(disk.directory, "store") };
    await using it = await startNode({ node: { images }, store });
    const { exitCode, stdout } = await it.crigc("gc", "--images", ...thresholds);
    expect(exitCode).toBe(4);
    expect(stdout).toMatch(
      /^Images: no candidates left, target not reached; 9 images \(90\.0 MiB\) become removable in (2m|1m\d\ds)\.$/m,
    );
    const plan = await it.crigc("plan", "--images", ...thresholds);
    expect(plan.stdout).toMatch(/^9 images \(90\.0 MiB\) become removable in (2m|1m\d\d?s)\.$/m);
  },
);

describe.skipIf(diskObstacle !== null)("gc of images whose removal gives nothing back", () => {
  const options = [...thresholds, "--image-gc-low-threshold=10"];
  const fifteen = names(15, "own").map((name) => image(name, [layer(name, 6)]));

  const full = async (change: Partial<Parameters<typeof startNode>[0]> = {}) => {
    const disk = await smallDisk(capacityBytes);
    const store = { directory: join(disk.directory, "store") };
    const it = await startNode({ node: { images: fifteen }, store, flags, ...change });
    writeFileSync(join(disk.directory, "other"), Buffer.alloc(disk.freeBytes()));
    return { disk, it };
  };

  test("ends after three on CRI-O with 0 bytes available, says so once, and keeps the rest in the next pass", async () => {
    const { disk, it } = await full({ traits: { ...crio137 } });
    await using _ = disk;
    await using __ = it;
    const report = await it.json(["gc", ...options], 4);
    expect(report.images).toMatchObject({
      end: "nothing-freed",
      measuredFreedBytes: 0,
      nothingFreed: { removals: 3, estimatedBytes: 18 * MiB, gainedBytes: 0 },
    });
    expect(report.events.map((event: Json) => event.reason)).toEqual(["ImageGCFutile"]);
    expect(it.removedImages()).toHaveLength(3);
    const again = await it.json(["gc", ...options], 4);
    expect(again).toMatchObject({ images: { end: "nothing-freed", items: [] }, events: [] });
    const plan = await it.json(["plan", ...options]);
    expect(plan.images.blocks).toMatchObject([{ code: "nothing-freed" }]);
    expect((await it.crigc("doctor")).stdout).toContain("gives no space back");
    // What is asked for by hand ends by its own count.
    const byHand = await it.json(["gc", "--all-unused"], 4);
    expect(byHand.images).toMatchObject({ end: "nothing-freed" });
    expect(it.removedImages()).toHaveLength(6);
  });
});

describe.skipIf(diskObstacle !== null)("an agent under disk pressure", () => {
  const quick = [
    "--pressure-period=100ms",
    "--image-gc-period=1h",
    "--eviction-pressure-transition-period=200ms",
    "--eviction-hard=imagefs.available<15%",
  ];

  test("removes images until the pressure is over, and no more", async () => {
    await using disk = await smallDisk(capacityBytes);
    const images = names(8, "own").map((name) => image(name, [layer(name, 10)]));
    const store = { directory: join(disk.directory, "store") };
    await using it = await startNode({ node: { images }, store, flags: [...flags, ...quick] });
    await using agent = it.start(
      "run",
      "--image-gc-high-threshold=99",
      "--image-gc-low-threshold=98",
    );
    await agent.untilSaid("connected to the runtime");
    const passes = (): number => it.runtime.callsOf("ImageFsInfo").length;
    await until("it has looked", 10_000, () => passes() > 0);
    expect(it.removedImages()).toEqual([]);
    writeFileSync(join(disk.directory, "grows"), Buffer.alloc(15 * MiB));
    await until("space is free again", 10_000, () => disk.usedBytes() <= 85 * MiB);
    await agent.untilSaid("EvictionThresholdMet");
    await until("the condition is over", 10_000, async () => {
      const status = await it.json(["status"]);
      return status.underPressure === false && status.pressure.length === 0;
    });
    expect(it.removedImages()).toHaveLength(1);
    const { removals } = await it.json(["history"]);
    expect(removals).toMatchObject([{ trigger: "pressure", signal: "imagefs.available" }]);
  });

  test("removes none if other data fills the disk, and reports it once", async () => {
    await using disk = await smallDisk(capacityBytes);
    writeFileSync(join(disk.directory, "no image"), Buffer.alloc(95 * MiB));
    const images = names(3, "own").map((name) => image(name, [layer(name, 0.5)]));
    const store = { directory: join(disk.directory, "store") };
    await using it = await startNode({ node: { images }, store, flags: [...flags, ...quick] });
    await using agent = it.start("run");
    await agent.untilSaid("ImageGCFutile");
    const seen = it.runtime.callsOf("ListImages").length;
    await until("it has looked again and again", 10_000, async () => {
      const status = await it.json(["status"]);
      const loop = status.loops.find((one: Json) => one.name === "pressure");
      return it.runtime.callsOf("ListImages").length > seen + 5 && loop !== undefined;
    });
    expect(it.removedImages()).toEqual([]);
    expect(agent.said().match(/event="ImageGCFutile"/g)?.length).toBe(1);
  });
});
