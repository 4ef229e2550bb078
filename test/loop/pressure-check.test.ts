import { describe, expect, test } from "bun:test";

import { checkPressure, pressurePauseMs } from "../../src/loop/agent/pressure-check.ts";
import { minutes } from "../../src/model/time.ts";
import { noPressure } from "../../src/policy/pressure/judge.ts";
import { aThreshold } from "../sim/simulation.ts";
import { aFilesystem, defaultLimits, GIB } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

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

  test("measures each filesystem once", async () => {
    const { engine, calls } = fakeEngine({ limits });
    const filesystems = [known, { ...known, device: "8:2", path: "/images" }];
    await checkPressure(engine, { filesystems, state: noPressure });
    expect(calls).toEqual(["statfs", "statfs"]);
  });

  test("fails if a filesystem cannot be measured", async () => {
    const { engine } = fakeEngine({ limits, fails: new Set(["statfs"]) });
    const checked = checkPressure(engine, { filesystems: [known], state: noPressure });
    const thrown = await checked.catch((error: unknown) => error);
    expect(String(thrown)).toContain("statfs was made to fail");
  });
});

describe("the pause before the next check", () => {
  const PERIOD_MS = 10_000;
  const pauseAt = async (availableBytes: bigint, compat: "none" | "kubelet" = "none") => {
    const { engine } = fakeEngine({
      limits: { ...limits, images: { ...limits.images, compat } },
      filesystem: aFilesystem({ availableBytes }),
    });
    const before = { filesystems: [known], state: noPressure };
    return pressurePauseMs(PERIOD_MS, await checkPressure(engine, before));
  };

  test.each([
    ["far from the threshold is the period", 60n * GIB, 10_000],
    ["2 GiB above it is what a disk at 1 GiB/s takes", 17n * GIB, 2_000],
    ["just above it is the shortest", 15n * GIB + 1_000_000n, 500],
    ["below it is the period again, because a pass follows each check", 14n * GIB, 10_000],
  ])("%s", async (_, availableBytes, pauseMs) => {
    expect(await pauseAt(availableBytes)).toBe(pauseMs);
  });

  test("is the kubelet's own with compat kubelet", async () => {
    expect(await pauseAt(15n * GIB + 1_000_000n, "kubelet")).toBe(PERIOD_MS);
  });

  test("is the shortest before the first observation, and a shorter period wins", () => {
    expect(pressurePauseMs(PERIOD_MS, null)).toBe(500);
    expect(pressurePauseMs(100, null)).toBe(100);
  });
});
