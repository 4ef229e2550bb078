// A loop runs at once, then each time its period has passed since the last run ended.

import { expect, test } from "bun:test";

import { Loop } from "../../src/agent/loops.ts";
import { hours, instant, seconds } from "../../src/model/time.ts";
import { timer } from "../../src/node/clock.ts";
import { pass, removedImage } from "../report/build.ts";
import { SimClock } from "../sim/clock.ts";
import { NOW } from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";

interface Setting {
  /** How long a run takes. */
  readonly takesMs?: number;
}

function started(setting: Setting = {}) {
  const clock = new SimClock();
  const stop = new AbortController();
  const startNs = clock.monotonicNs();
  const runs: number[] = [];
  let ended = false;
  const { engine, world } = fakeEngine({});
  const loop = new Loop({
    name: "image-gc",
    engine: { ...engine, timer: clock },
    periodMs: 10_000,
    pauseMs: () => 10_000,
    isEnabled: true,
    run: async () => {
      runs.push(Number(clock.monotonicNs() - startNs) / 1e9);
      if (setting.takesMs !== undefined) await clock.sleep(setting.takesMs);
      return null;
    },
    failed: () => undefined,
  });
  void loop.repeat(stop.signal).then(() => (ended = true));
  return { clock, world, loop, runs, stop: () => stop.abort(), ended: () => ended };
}

test("a loop runs at once, then a period after the end of each run", async () => {
  const { clock, runs } = started({ takesMs: 3_000 });
  await clock.run(30_000);
  expect(runs).toEqual([0, 13, 26]);
});

test("the next run is as far off on a wall clock that was set back", async () => {
  const { clock, world, loop } = started();
  await clock.run(4_000);
  world.wall = instant(NOW - hours(25));
  expect(loop.state().nextAt).toBe(instant(world.wall + seconds(6)));
});

test("a loop is silent since a run or a removal in it ended, and not while it waits for its turn", async () => {
  const { clock, loop } = started({ takesMs: 60_000 });
  await clock.run(50_000);
  const silent = [loop.state().silentMs];
  loop.engine.journal.done(pass().id, removedImage(1));
  silent.push(loop.state().silentMs);
  await clock.run(20_000);
  silent.push(loop.state().silentMs);
  loop.queued();
  silent.push(loop.state().silentMs);
  loop.resumed();
  expect([...silent, loop.state().silentMs]).toEqual([50_000, 0, 10_000, null, 0]);
});

test("a stopped loop ends its pause at once, and a run in flight first", async () => {
  const pausing = started();
  await pausing.clock.run(5_000);
  pausing.stop();
  await pausing.clock.run(1);
  expect([pausing.ended(), pausing.runs]).toEqual([true, [0]]);

  const running = started({ takesMs: 8_000 });
  await running.clock.run(5_000);
  running.stop();
  await running.clock.run(2_000);
  expect(running.ended()).toBeFalse();
  await running.clock.run(2_000);
  expect([running.ended(), running.runs.length]).toEqual([true, 1]);
});

test("a loop that pauses a hundred thousand times keeps nothing of its pauses", async () => {
  const stop = new AbortController();
  let runs = 0;
  let before = 0;
  const heldBytes = (): number => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  // The real timer's listeners without its waiting.
  const atOnce = {
    monotonicNs: () => BigInt(runs) * 1_000_000n,
    sleep: (_: number, signal: AbortSignal) => {
      runs += 1;
      const slept = timer.sleep(0, signal);
      return runs % 1_000 === 0 ? slept : Promise.resolve();
    },
  };
  const loop = new Loop({
    name: "image-gc",
    engine: { ...fakeEngine({}).engine, timer: atOnce },
    periodMs: 1,
    pauseMs: () => 1,
    isEnabled: true,
    run: async () => {
      if (runs === 20_000) before = heldBytes();
      if (runs >= 120_000) stop.abort();
      return null;
    },
    failed: () => undefined,
  });
  await loop.repeat(stop.signal);
  expect(heldBytes() - before).toBeLessThan(4_000_000);
}, 30_000);
