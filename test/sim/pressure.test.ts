// Disk pressure under simulated time: what a check costs, how soon it is acted on, how far, and what is said.

import { describe, expect, test } from "bun:test";

import { minutes } from "../../src/model/time.ts";
import { MIB } from "../support/build/values.ts";
import { aDisk, aRelease, available, imageOf } from "./node.ts";
import {
  aNodeWith,
  HOUR,
  MINUTE,
  ONLY_PRESSURE,
  SECOND,
  simLimits,
  type Simulation,
} from "./simulation.ts";

const reasons = (sim: Simulation): readonly string[] =>
  sim.record.events.map(({ reason }) => reason);

test("the time to reclaim is at most one pressure period after crossing a hard threshold", async () => {
  for (let offset = 0; offset < 40; offset += 1) {
    const sim = await aNodeWith(40, { seed: offset, weather: { latencyMs: 5 } });
    await sim.run(sim.random.next() * 20 * SECOND);
    const crossedNs = sim.clock.monotonicNs();
    sim.fill(14);
    await sim.run(12 * SECOND);
    const first = sim.record.removals[0];
    expect(first).toBeDefined();
    expect(Number((first?.atNs ?? 0n) - crossedNs) / 1e9).toBeLessThanOrEqual(10.2);
  }
});

test("pressure that images cannot relieve with images on another disk ends after five removals that give nothing back, and tries as many after each pause", async () => {
  const first = aDisk({ roles: ["imagefs", "containerfs", "nodefs"] });
  const second = aDisk({ roles: ["imagefs"], device: "8:2", path: "/var/lib/stargz" });
  // All layers lie on the first one.
  const sim = await aNodeWith(40, { disks: [first, second], weather: { told: "none" } });
  sim.fill(14, second);
  await sim.run(4 * MINUTE);
  expect(sim.record.removals).toHaveLength(5);
  // After 5, 15 and 35 minutes.
  await sim.run(HOUR);
  expect(sim.record.removals).toHaveLength(20);
  expect(reasons(sim)).toContain("NothingFreed");
});

test("pressure that images cannot relieve is told once, and once more when it comes back", async () => {
  const sim = await aNodeWith(1, { periods: ONLY_PRESSURE });
  for (let times = 1; times <= 2; times += 1) {
    sim.fill(2);
    await sim.run(10 * MINUTE);
    expect(reasons(sim).filter((reason) => reason === "ImageGCFutile")).toHaveLength(times);
    sim.fill(60);
    await sim.run(10 * MINUTE);
  }
});

test("an image that a job pulls repeatedly is never removed", async () => {
  const sim = await aNodeWith(60, { weather: { latencyMs: 20 } });
  const job = aRelease("job", 2_000);
  let pulls = 0;
  for (let run = 0; run < 20; run += 1) {
    if (!sim.node.images.has(imageOf(job))) pulls += 1;
    sim.node.pull(job);
    const sandbox = sim.node.addSandbox(`job${run}`, imageOf(job));
    sim.node.addContainer(sandbox, imageOf(job));
    await sim.run(MINUTE);
    sim.node.endPod(sandbox);
    sim.node.pods.delete(sandbox.podUid);
    // Others write all the while: images have to go in each round.
    const room = available(sim.node, sim.node.imageDisk());
    sim.node.imageDisk().others += room < 3_000n * MIB ? room : 3_000n * MIB;
    await sim.run(2 * MINUTE);
  }
  expect(sim.record.removals.length).toBeGreaterThan(10);
  expect(pulls).toBe(1);
});

describe("a node that is killed every hour", () => {
  const live = async (
    sim: Simulation,
    days: number,
    everyHour: (hour: number) => void,
  ): Promise<void> => {
    for (let hour = 0; hour < days * 24; hour += 1) {
      sim.kill();
      // What the next holder of the lock finds: a ledger that its writer did not close.
      sim.record.ledger = { ...sim.record.ledger, ageRestartDue: true };
      sim.start();
      everyHour(hour);
      await sim.run(HOUR);
    }
  };
  const SPARSE = { ...ONLY_PRESSURE, "image-detection": 10 * MINUTE, "image-gc": 20 * MINUTE };

  test("still collects, down to the low threshold within each hour of five days", async () => {
    const sim = await aNodeWith(0, { periods: SPARSE });
    const above: number[] = [];
    await live(sim, 5, (hour) => {
      if (sim.freePercent() < 15) above.push(hour);
      sim.node.pull(aRelease(`image${hour}`, 6_000));
    });
    expect(above).toEqual([]);
    expect(sim.record.removals.length).toBeGreaterThan(105);
  });

  test("reaches a maximum age of a week, and nothing else is removed", async () => {
    const limits = {
      ...simLimits,
      images: { ...simLimits.images, maximumAge: minutes(7 * 24 * 60) },
    };
    const sim = await aNodeWith(3, { periods: SPARSE, weather: { limits } });
    const removedAt: number[] = [];
    await live(sim, 10, (hour) => {
      if (sim.record.removals.length > 0 && removedAt.length === 0) removedAt.push(hour);
    });
    expect(sim.record.removals).toHaveLength(3);
    expect(removedAt[0]).toBeWithin(7 * 24, 7 * 24 + 12);
  });
});
