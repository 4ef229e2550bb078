// The disks as the agent shows them.

import { describe, expect, test } from "bun:test";

import { checkPressure, Measurements } from "../../src/agent/pressure.ts";
import { duration, instant } from "../../src/model/time.ts";
import { aFilesystem, GIB, NOW } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

const nothing = { images: [], containers: [] };
const seen = {
  filesystems: [aFilesystem({ path: "/images", availableBytes: 9n * GIB, imageUsedBytes: 7n })],
  observedAt: NOW,
};

/** Disks that are noted, at the times that a test sets. */
function noted() {
  const time = { now: NOW };
  const { world, engine } = fakeEngine({ filesystem: seen.filesystems[0] ?? aFilesystem() });
  const measurements = new Measurements(() => time.now);
  const disk = measurements.recording(engine.observe.disk);
  const measured = async (secondsLater: number, availableBytes: bigint): Promise<void> => {
    time.now = instant(NOW + BigInt(secondsLater) * 1_000_000_000n);
    world.filesystem = { ...world.filesystem, availableBytes };
    await disk.measure("/images");
  };
  return { world, time, disk, measurements, measured };
}

describe("the shown figures of a filesystem", () => {
  test("are not those of the beginning of a pass recorded at its end", async () => {
    const { world, time, disk, measurements, measured } = noted();
    const filesystems = await disk.filesystems(nothing);
    await measured(30, 2n * GIB);
    time.now = instant(NOW + 60_000_000_000n);
    expect(measurements.newest({ filesystems, observedAt: NOW })).toMatchObject([
      { availableBytes: 2n * GIB, measuredAt: instant(NOW + 30_000_000_000n) },
    ]);
    world.filesystem = { ...world.filesystem, availableBytes: 3n * GIB };
    await disk.filesystems(nothing);
    expect(measurements.newest(seen)).toMatchObject([{ availableBytes: 3n * GIB }]);
  });

  test("are those of the check for pressure if the observation could not measure it", async () => {
    const { world, disk, measurements, measured } = noted();
    const unmeasured = "it does not answer";
    world.filesystem = { ...world.filesystem, capacityBytes: 0n, unmeasured };
    const before = { filesystems: await disk.filesystems(nothing), observedAt: NOW };
    expect(measurements.newest(before)).toMatchObject([{ capacityBytes: 0n, unmeasured }]);
    world.filesystem = aFilesystem({ path: "/images" });
    await measured(10, 5n * GIB);
    const [shown] = measurements.newest(before);
    expect([shown?.availableBytes, shown?.unmeasured]).toEqual([5n * GIB, undefined]);
  });

  test("are unchanged by a failed measurement", async () => {
    const { world, measurements, measured } = noted();
    expect(measurements.newest(null)).toEqual([]);
    await measured(10, 5n * GIB);
    world.fails.add("statfs");
    expect(await measured(20, GIB).catch(() => "failed")).toBe("failed");
    expect(measurements.newest(seen)).toMatchObject([
      { availableBytes: 5n * GIB, imageUsedBytes: 7n },
    ]);
  });
});

test("a disk that cannot be measured keeps the pressure on it, and the grace period of its thresholds", async () => {
  const { world, engine } = fakeEngine({ filesystem: aFilesystem({ path: "/images" }) });
  const state = {
    firstMet: new Map([
      [`key|${world.filesystem.device}`, duration(1n)],
      ["key|other", duration(1n)],
    ]),
    due: new Set([`key|${world.filesystem.device}`]),
    lastMet: null,
  };
  world.fails.add("statfs");
  const check = await checkPressure(engine, { filesystems: [world.filesystem], state });
  expect(check.failure).not.toBeNull();
  expect([...check.verdict.state.firstMet.keys()]).toEqual([`key|${world.filesystem.device}`]);
  expect(check.verdict.state.due).toEqual(state.due);
  expect(check.verdict.condition).toBeTrue();
});
