import { describe, expect, test } from "bun:test";

import { checkPressure } from "../../src/agent/pressure.ts";
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
