// A check of the disks for pressure.

import { expect, test } from "bun:test";

import { checkPressure, PressurePace } from "../../src/agent/pressure.ts";
import { duration } from "../../src/model/time.ts";
import { judgePressure, noPressure } from "../../src/policy/pressure/thresholds.ts";
import { aFilesystem, aLedger, anImage, NOW, recordsOf } from "../support/build/values.ts";
import { fakeEngine, runFakePass } from "../support/fake-engine.ts";

test.each([
  [1_000, [0, 2_000, 4_000, 8_000, 10_000, 10_000]],
  [4_000, [0, 8_000, 10_000, 10_000]],
  [30_000, [0, 30_000, 30_000]],
])(
  "at a period of %d ms, passes that removed nothing are %j ms apart, and one that removed something is followed at once",
  async (periodMs, apart) => {
    const amount = { kind: "quantity", value: 1n } as const;
    const verdict = judgePressure({
      limits: {
        thresholds: [
          { signal: "imagefs.available", amount, grace: duration(0n), minimumReclaim: null },
        ],
        transitionPeriod: duration(0n),
      },
      filesystems: [aFilesystem({ availableBytes: 0n })],
      state: noPressure,
      uptime: duration(0n),
    });
    const removing = fakeEngine({
      images: [anImage("a")],
      ledger: aLedger({ images: recordsOf(["a"]) }),
    });
    const { pass } = await runFakePass(removing, { purpose: { kind: "all-unused" } });
    let nowMs = 0;
    const timer = { ...removing.engine.timer, monotonicNs: () => BigInt(nowMs) * 1_000_000n };
    const pace = new PressurePace({ timer }, periodMs);
    const nextMs = () => {
      const startMs = nowMs;
      for (; !pace.mayBegin(verdict); nowMs += 500) expect(nowMs - startMs).toBeLessThan(60_000);
      return nowMs - startMs;
    };
    for (const ms of apart) {
      expect(nextMs()).toBe(ms);
      pace.passEnded({ images: null, containers: null });
    }
    pace.passEnded(pass);
    expect(nextMs()).toBe(0);
    pace.passEnded({ images: null, containers: null });
    expect(pace.mayBegin(verdict)).toBe(false);
    pace.reset();
    expect(pace.mayBegin(verdict)).toBe(true);
    expect(pace.mayBegin({ ...verdict, due: [] })).toBe(false);
  },
);

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
