// The agent under simulated time: five loops, one pass at a time, and what it says of itself.

import { describe, expect, test } from "bun:test";

import { healthOf } from "../../src/agent/status-server.ts";
import type { Pass } from "../../src/model/pass.ts";
import { hours } from "../../src/model/time.ts";
import { passStatus } from "../../src/report/status.ts";
import { surrounded } from "../sim/around.ts";
import { aRelease, available } from "../sim/node.ts";
import {
  aThreshold,
  HOUR,
  MINUTE,
  SECOND,
  simLimits,
  Simulation,
  withThresholds,
} from "../sim/simulation.ts";
import { MIB } from "../support/build/values.ts";
import { failureOf } from "../support/failure.ts";

function aNode(images = 20, change: ConstructorParameters<typeof Simulation>[0] = {}): Simulation {
  const sim = new Simulation(change);
  for (let at = 0; at < images; at += 1) sim.node.pull(aRelease(`image${at}`, 1_000 + at));
  return sim;
}

/** The node after so long with an agent. */
async function running(ms: number, ...of: Parameters<typeof aNode>): Promise<Simulation> {
  const sim = aNode(...of);
  sim.start();
  await sim.run(ms);
  return sim;
}

const loopOf = (sim: Simulation, name: string) => {
  const loop = sim.agent.state().loops.find((one) => one.name === name);
  if (loop === undefined) throw new Error(`there is no loop ${name}`);
  return loop;
};

describe("the loops", () => {
  test("run at their periods: containers each minute, images each five, pressure only when there is some", async () => {
    const sim = await running(HOUR + SECOND);
    expect(sim.passes("container-gc")).toHaveLength(61);
    expect(sim.passes("image-gc")).toHaveLength(13);
    expect(sim.passes("pressure")).toHaveLength(0);
  });

  test("show a disk as the check for pressure measured it, ten seconds ago at most, and measure nothing for it", async () => {
    const sim = await running(35 * SECOND, 5);
    sim.node.imageDisk().others += 500n * MIB;
    const before = sim.record.statfs;
    await sim.run(10 * SECOND);
    const [shown] = sim.agent.state().filesystems;
    expect(shown?.availableBytes).toBe(available(sim.node, sim.node.imageDisk()));
    expect(shown?.measuredAt).toBeGreaterThanOrEqual(sim.node.wall() - 10_000_000_000n);
    expect(sim.agent.state().seen?.filesystems[0]?.availableBytes).not.toBe(shown?.availableBytes);
    expect(sim.record.statfs).toBe(before + sim.node.disks.length);
  });

  test("say when they ran and when they are due", async () => {
    const sim = await running(90 * SECOND);
    const loop = loopOf(sim, "container-gc");
    expect(loop).toMatchObject({ enabled: true, lastError: null, consecutiveFailures: 0 });
    expect(loop.nextAt).toBe((sim.node.wall() + 30_000_000_000n) as never);
  });

  test("keep what a status says of their last passes, and no plans", async () => {
    const sim = await running(SECOND);
    const [ended] = sim.passes("container-gc");
    const { lastPasses, podSource } = sim.agent.state();
    expect(lastPasses.get("container-gc")).toEqual(passStatus(ended as Pass));
    expect(podSource).toEqual(ended?.plan.containers?.podSource as never);
  });

  test("run no image GC without a trigger, and report it as disabled", async () => {
    const limits = { ...simLimits, images: { ...simLimits.images, highPercent: 100 } };
    const sim = aNode(20, { weather: { limits } });
    sim.fill(16);
    sim.start();
    await sim.run(HOUR);
    expect(sim.passes("image-gc")).toHaveLength(0);
    expect(loopOf(sim, "image-gc").enabled).toBeFalse();
    expect(sim.record.removals).toEqual([]);
  });

  test("never run two passes at once", async () => {
    const sim = await running(5 * MINUTE, 60, { weather: { latencyMs: 3_000 }, lateMs: 2_000 });
    for (let round = 0; round < 10; round += 1) {
      sim.fill(9);
      await sim.run(80 * SECOND);
    }
    const times = sim.record.passes
      .map(({ startedAt, endedAt }) => ({ from: startedAt, to: endedAt }))
      .toSorted((one, other) => (one.from < other.from ? -1 : 1));
    for (const [index, { from }] of times.entries()) {
      const earlier = times[index - 1];
      if (earlier !== undefined) expect(from >= earlier.to).toBeTrue();
    }
    expect(sim.record.removals.length).toBeGreaterThan(10);
  });
});

test("a container pass interrupted by one under pressure is not a failure, neither of the loop nor of the runtime", async () => {
  const sim = await running(5 * MINUTE, 60, { seed: 2, weather: { latencyMs: 20_000 } });
  for (let round = 0; round < 60; round += 1) {
    if (round % 8 === 0) sim.fill(9);
    await sim.run(10 * SECOND);
    expect(sim.agent.state().runtimeError).toBeNull();
    expect(loopOf(sim, "container-gc")).toMatchObject({ lastError: null, consecutiveFailures: 0 });
  }
  const cutOff = sim.passes("container-gc").filter(({ plan }) => plan.containers === null);
  expect(cutOff).not.toBeEmpty();
  for (const { error, containers } of cutOff)
    expect({ error, end: containers?.end }).toEqual({ error: null, end: "stopped" });
  expect(sim.record.events.map(({ reason }) => reason)).not.toContain("ContainerGCFailed");
});

describe("an image pass whose removals take a minute each yields to one under pressure", () => {
  /** Runs until such a pass, down to the budget, has begun and the disk is full; the one before it has failed. */
  async function filled(storeBudgetBytes: bigint): Promise<Simulation> {
    const limits = { ...simLimits, images: { ...simLimits.images, storeBudgetBytes } };
    const sim = aNode(60, {
      refit: (engine, { clock, record }) => ({
        ...engine,
        writer: surrounded(engine.writer, async (name, _, ask) => {
          if (name === "removeImage" && record.kind === "image-gc") await clock.sleep(MINUTE);
          return ask();
        }),
      }),
    });
    sim.start();
    await sim.run(4 * MINUTE);
    sim.weather.runtimeIsAway = true;
    await sim.run(2 * MINUTE);
    sim.weather.runtimeIsAway = false;
    expect(loopOf(sim, "image-gc").consecutiveFailures).toBe(1);
    sim.weather.limits = limits;
    await sim.run(5 * MINUTE + 30 * SECOND);
    expect(sim.record.kind).toBe("image-gc");
    sim.fill(9);
    return sim;
  }

  test("after its removal in flight, as does a container pass that waits ahead of it", async () => {
    const sim = await filled(57_000n * MIB);
    await sim.run(MINUTE);
    const last = sim.record.passes.slice(-3).map(({ kind, containers }) => [kind, containers?.end]);
    expect(last).toEqual([
      ["image-gc", undefined],
      ["container-gc", "stopped"],
      ["pressure", "done"],
    ]);
    expect(sim.passes("image-gc").at(-1)).toMatchObject({ images: { end: "stopped" } });
    // It neither failed nor succeeded.
    expect(loopOf(sim, "image-gc").consecutiveFailures).toBe(1);
  });
});

describe("health", () => {
  const TIMEOUT_MS = 2 * MINUTE;
  const problems = (sim: Simulation) =>
    healthOf(sim.agent.state(), TIMEOUT_MS).flatMap(({ name, problem }) =>
      problem === null ? [] : [`${name}: ${problem}`],
    );

  test("of a loop whose removal hangs fails, although the image list is still refreshed", async () => {
    const sim = await running(5 * MINUTE, 60);
    sim.weather.removalsHang = true;
    sim.fill(5);
    await sim.run(4 * MINUTE);
    expect(sim.record.removals).toHaveLength(1);
    expect(problems(sim)).toEqual([]);
    const before = loopOf(sim, "image-cache").lastEndedAt ?? 0n;
    await sim.run(7 * MINUTE);
    expect(loopOf(sim, "image-cache").lastEndedAt ?? 0n).toBeGreaterThan(before);
    expect(problems(sim)).toEqual([
      expect.stringMatching(/: no run and no removal ended for \d+ s$/),
    ]);
  });

  test("holds during a pass that takes an hour and goes on removing, also of loops that wait for it", async () => {
    const sim = await running(30 * MINUTE, 60, { weather: { latencyMs: 20_000 } });
    sim.fill(0.1);
    for (let minute = 0; minute < 90; minute += 1) {
      await sim.run(MINUTE);
      expect(problems(sim)).toEqual([]);
    }
    expect(sim.record.removals.length).toBeGreaterThan(10);
  });

  test("holds when the wall clock jumps by a day", async () => {
    const sim = await running(2 * MINUTE);
    sim.node.wallOffset += hours(24);
    expect(problems(sim)).toEqual([]);
  });
});

test("a disk that cannot be measured is reported as such, not as a silent runtime", async () => {
  const sim = await running(MINUTE);
  Object.assign(sim.node.imageDisk(), { path: "/gone" });
  await sim.run(20 * SECOND);
  expect(sim.agent.state().runtimeError).toBeNull();
  expect(loopOf(sim, "pressure").lastError).toContain("no disk at");
  expect(sim.record.removals).toEqual([]);
  // The next observation finds out where it is now.
  await sim.run(MINUTE);
  expect(loopOf(sim, "pressure").lastError).toBeNull();
});

test("a stop starts no pass that was waiting for its turn, and reports none", async () => {
  const sim = await running(10 * SECOND, 60, { weather: { latencyMs: 30_000 } });
  const stopped = sim.node.wall();
  expect(await sim.stop()).toBeTrue();
  expect(sim.record.passes.filter(({ startedAt }) => startedAt >= stopped)).toEqual([]);
});

describe("the turn of a command's pass", () => {
  const never = new AbortController().signal;
  const turnOf = async (sim: Simulation, waitMs: number, signal = never) => {
    const asked = sim.agent.turn({ waitMs, signal });
    await sim.run(10 * SECOND);
    return asked;
  };

  test("lets no loop begin a pass until it is over", async () => {
    const sim = await running(5 * SECOND);
    const turn = await turnOf(sim, 60_000);
    const before = sim.record.passes.length;
    await sim.run(10 * MINUTE);
    expect(sim.record.passes).toHaveLength(before);
    turn[Symbol.dispose]();
    await sim.run(5 * SECOND);
    expect(sim.passes("image-gc").length).toBeGreaterThan(1);
  });

  test("comes after the pass before it, or not within the time allowed", async () => {
    const sim = await running(5 * SECOND);
    const first = await turnOf(sim, 60_000);
    const second = sim.agent.turn({ waitMs: 2_000, signal: never });
    const third = sim.agent.turn({ waitMs: 60_000, signal: never });
    const late = failureOf(second);
    await sim.run(10 * SECOND);
    expect(await late).toMatchObject({ kind: "lock" });
    first[Symbol.dispose]();
    await sim.run(SECOND);
    (await third)[Symbol.dispose]();
  });

  test("is not waited for once the command is interrupted", async () => {
    const sim = await running(5 * SECOND);
    const turn = await turnOf(sim, 60_000);
    const interrupt = new AbortController();
    const failing = failureOf(sim.agent.turn({ waitMs: 60_000, signal: interrupt.signal }));
    interrupt.abort();
    await sim.run(SECOND);
    expect(await failing).toMatchObject({ kind: "stopped" });
    turn[Symbol.dispose]();
  });

  test("says once disk pressure is due, which ends its waits, and a pass under pressure comes after it", async () => {
    const hard = withThresholds(aThreshold("imagefs.available", 30));
    const sim = await running(6 * MINUTE, 20, { weather: { limits: hard } });
    const turn = await turnOf(sim, 60_000);
    const { preempt } = turn;
    expect(preempt.aborted).toBeFalse();
    sim.fill(25);
    await sim.run(10 * SECOND);
    expect(preempt.aborted).toBeTrue();
    expect(sim.record.removals).toEqual([]);
    turn[Symbol.dispose]();
    await sim.run(10 * SECOND);
    expect(sim.record.removals).not.toBeEmpty();
  });
});
