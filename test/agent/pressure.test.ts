// A check of the disks for pressure.

import { expect, test } from "bun:test";

import { checkPressure } from "../../src/agent/pressure.ts";
import { duration } from "../../src/model/time.ts";
import { aFilesystem, NOW } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

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
  const known = [{ ...world.filesystem, measuredAt: NOW }];
  const check = await checkPressure(engine, { filesystems: known, state });
  expect(check.filesystems).toEqual(known);
  expect(check.failure).not.toBeNull();
  expect([...check.verdict.state.firstMet.keys()]).toEqual([`key|${world.filesystem.device}`]);
  expect(check.verdict.state.due).toEqual(state.due);
  expect(check.verdict.condition).toBeTrue();
});
