// A loop runs at once, then each time its period has passed since the last run ended.

import { describe, expect, test } from "bun:test";

import { repeat } from "../../src/agent/schedule.ts";
import { timer } from "../../src/node/clock.ts";
import { SimClock } from "../sim/clock.ts";

interface Setting {
  readonly periodMs?: () => number;
  /** How long a run takes. */
  readonly takesMs?: number;
}

function scheduled(setting: Setting = {}) {
  const clock = new SimClock();
  const stop = new AbortController();
  let reload = new AbortController();
  const startNs = clock.monotonicNs();
  const seconds = (): number => Number(clock.monotonicNs() - startNs) / 1e9;
  const runs: number[] = [];
  const announced: number[] = [];
  let ended = false;
  void repeat(
    {
      timer: clock,
      periodMs: setting.periodMs ?? (() => 10_000),
      run: async () => {
        runs.push(seconds());
        if (setting.takesMs !== undefined) await clock.sleep(setting.takesMs);
      },
      scheduled: (inMs) => announced.push(inMs),
      interruption: () => reload.signal,
    },
    stop.signal,
  ).then(() => {
    ended = true;
  });
  return {
    clock,
    runs,
    announced,
    stop: () => stop.abort(),
    reload: () => {
      const before = reload;
      reload = new AbortController();
      before.abort();
    },
    ended: () => ended,
  };
}

describe("a loop", () => {
  test("runs at once, and then a period after the end of each run", async () => {
    const { clock, runs } = scheduled({ takesMs: 3_000 });
    await clock.run(30_000);
    expect(runs).toEqual([0, 13, 26]);
  });

  test("says when it is due next", async () => {
    const { clock, announced } = scheduled();
    await clock.run(15_000);
    expect(announced).toEqual([10_000, 10_000]);
  });

  test("measures its pause again by another period, counted from the end of the last run", async () => {
    let periodMs = 60_000;
    const { clock, runs, reload } = scheduled({ periodMs: () => periodMs });
    await clock.run(20_000);
    periodMs = 30_000;
    reload();
    await clock.run(20_000);
    expect(runs).toEqual([0, 30]);
  });

  test("runs at once if the new period is already over, and only once for many reloads", async () => {
    let periodMs = 60_000;
    const { clock, runs, reload } = scheduled({ periodMs: () => periodMs });
    await clock.run(20_000);
    periodMs = 5_000;
    for (let time = 0; time < 5; time += 1) reload();
    await clock.run(1_000);
    expect(runs).toEqual([0, 20]);
  });

  test("ends during its pause when stopped", async () => {
    const { clock, runs, stop, ended } = scheduled();
    await clock.run(5_000);
    stop();
    await clock.run(1);
    expect(ended()).toBeTrue();
    expect(runs).toEqual([0]);
  });

  test("ends after the run in flight", async () => {
    const { clock, runs, stop, ended } = scheduled({ takesMs: 8_000 });
    await clock.run(5_000);
    stop();
    await clock.run(2_000);
    expect(ended()).toBeFalse();
    await clock.run(2_000);
    expect(ended()).toBeTrue();
    expect(runs).toHaveLength(1);
  });
});

test("a loop that pauses a hundred thousand times keeps nothing of its pauses", async () => {
  const stop = new AbortController();
  const reload = new AbortController();
  let runs = 0;
  let heldBytes = 0;
  const held = (): number => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  // The real timer's listeners without its waiting.
  const instant = {
    monotonicNs: () => BigInt(runs) * 1_000_000n,
    sleep: (_: number, signal: AbortSignal) => {
      runs += 1;
      const gone = timer.sleep(0, signal);
      return runs % 1_000 === 0 ? gone : Promise.resolve();
    },
  };
  const work = async (): Promise<void> => {
    if (runs === 20_000) heldBytes = held();
    if (runs < 120_000) return;
    stop.abort();
  };
  await repeat(
    {
      timer: instant,
      periodMs: () => 1,
      run: work,
      scheduled: () => undefined,
      interruption: () => reload.signal,
    },
    stop.signal,
  );
  expect(runs).toBeGreaterThanOrEqual(120_000);
  expect(held() - heldBytes).toBeLessThan(4_000_000);
}, 30_000);
