// The disks as the agent shows them, and as it checks them for pressure.

import { describe, expect, test } from "bun:test";

import { checkPressure, Measurements } from "../../src/agent/pressure.ts";
import { instant, minutes } from "../../src/model/time.ts";
import { noPressure } from "../../src/policy/pressure/judge.ts";
import { aThreshold } from "../sim/simulation.ts";
import { aFilesystem, defaultLimits, GIB, NOW } from "../support/build/values.ts";
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

const limits = {
  ...defaultLimits,
  pressure: {
    thresholds: [aThreshold("imagefs.available", 15)],
    transitionPeriod: minutes(5),
  },
};
const known = aFilesystem({ availableBytes: 50n * GIB });

describe("a check of the disks", () => {
  test("measures free space now, not as of the last observation", async () => {
    const { engine, calls } = fakeEngine({
      limits,
      filesystem: aFilesystem({ availableBytes: 5n * GIB }),
    });
    const verdict = await checkPressure(engine, { filesystems: [known], state: noPressure });
    expect(verdict.due).toMatchObject([{ threshold: { signal: "imagefs.available" } }]);
    expect(verdict.targets).toMatchObject([{ device: "8:1" }]);
    expect(calls).toEqual(["statfs"]);
  });

  test("measures each filesystem once, and fails if one cannot be measured", async () => {
    const filesystems = [known, { ...known, device: "8:2", path: "/images" }];
    const { engine, calls, world } = fakeEngine({ limits });
    await checkPressure(engine, { filesystems, state: noPressure });
    expect(calls).toEqual(["statfs", "statfs"]);
    world.fails.add("statfs");
    const checked = checkPressure(engine, { filesystems, state: noPressure });
    expect(await checked.catch(String)).toContain("statfs was made to fail");
  });
});
