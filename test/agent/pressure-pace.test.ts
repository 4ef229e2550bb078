// The agent's checks and passes under pressure, by virtual time.

import { describe, expect, test } from "bun:test";

import { HostError } from "../../src/model/errors.ts";
import { hours } from "../../src/model/time.ts";
import { surrounded } from "../sim/around.ts";
import { aDisk, aRelease, available, imageOf, type SimDisk } from "../sim/node.ts";
import {
  aNodeWith,
  aThreshold,
  HOUR,
  MINUTE,
  ONLY_PRESSURE,
  SECOND,
  simLimits,
  type SimOptions,
  Simulation,
  withThresholds,
} from "../sim/simulation.ts";
import { GIB, MIB } from "../support/build/values.ts";

const aNode = (images: number, options: SimOptions = {}): Promise<Simulation> =>
  aNodeWith(images, { periods: ONLY_PRESSURE, ...options });

/** Until the first pass under pressure has ended; answers with all of them so far. */
async function firstPass(sim: Simulation) {
  const passes = () => sim.passes("pressure");
  for (let step = 0; step < 200 && passes().length === 0; step += 1) await sim.run(100);
  return passes;
}

/** Seconds from the end of each pass under pressure to the start of the next. */
function pauses(sim: Simulation): readonly number[] {
  const passes = sim.passes("pressure");
  return passes.slice(1).flatMap(({ startedAt }, at) => {
    const before = passes[at];
    return before === undefined ? [] : [Number(startedAt - before.endedAt) / 1e9];
  });
}

/** While `on`, others write 1000 MiB with each list of images, so that its own gain ends a pass. */
function aWriter() {
  const writer = { on: false };
  const refit: SimOptions["refit"] = (engine, sim) => {
    const { runtime } = engine.observe;
    const listImages: typeof runtime.listImages = (signal) => {
      if (writer.on) sim.node.imageDisk().others += 1_000n * MIB;
      return runtime.listImages(signal);
    };
    return { ...engine, observe: { ...engine.observe, runtime: { ...runtime, listImages } } };
  };
  return { writer, refit };
}

describe("after a pass that leaves a threshold met", () => {
  test("the next comes 500 ms later as long as they remove images", async () => {
    const { writer, refit } = aWriter();
    const sim = await aNode(70, { refit });
    writer.on = true;
    sim.fill(14);
    const passes = await firstPass(sim);
    await sim.run(5 * SECOND);
    expect(new Set(passes().map(({ images }) => images?.end))).toEqual(
      new Set(["own-gain-reached"]),
    );
    expect(passes()).toHaveLength(11);
    expect(new Set(pauses(sim))).toEqual(new Set([0.5]));
    expect(sim.record.removals.length).toBeGreaterThan(11);
  });

  test("the pause doubles up to the period while they remove nothing, and restarts with a removal", async () => {
    const { writer, refit } = aWriter();
    const sim = await aNode(40, { refit });
    sim.weather.refusedPercent = 100;
    sim.fill(14);
    await firstPass(sim);
    await sim.run(36 * SECOND);
    expect(pauses(sim)).toEqual([0.5, 1, 2, 4, 8, 10, 10]);
    sim.weather.refusedPercent = 0;
    writer.on = true;
    await sim.run(11_800);
    expect(pauses(sim).slice(7)).toEqual([10, 0.5, 0.5, 0.5, 0.5]);
  });

  test("the pause is at most two seconds while the runtime restarts", async () => {
    const sim = await aNode(40);
    sim.weather.runtimeIsAway = true;
    sim.fill(14);
    await firstPass(sim);
    await sim.run(10 * SECOND);
    expect(pauses(sim)).toEqual([0.5, 1, 2, 2, 2, 2]);
    sim.weather.runtimeIsAway = false;
    await sim.run(2 * SECOND);
    expect(sim.record.removals).not.toBeEmpty();
  });

  test.each([
    ["is futile", 2, {}],
    [
      "has the kubelet's rules",
      2,
      { compat: "kubelet", accounting: "reported", whenFutile: "collect" },
    ],
  ] as const)("the next comes a period later if it %s", async (_, images, change) => {
    const limits = { ...simLimits, images: { ...simLimits.images, ...change } };
    const sim = await aNode(images, { weather: { limits } });
    sim.fill(3);
    await sim.run(MINUTE);
    expect(new Set(pauses(sim))).toEqual(new Set([10]));
  });

  test("a threshold that becomes due meanwhile, or a released hold, begins the next one at once", async () => {
    const disks: readonly SimDisk[] = [
      aDisk({ roles: ["imagefs", "containerfs"], device: "8:2" }),
      aDisk({ roles: ["nodefs"], path: "/var/lib/kubelet" }),
    ];
    const sim = await aNode(40, { disks });
    sim.weather.hold = { kind: "held", until: null, since: null, reason: "an upgrade" };
    sim.fill(14);
    await sim.run(24 * SECOND);
    expect(pauses(sim)).toEqual([10, 10]);
    sim.fill(5, sim.node.disks[1]);
    await sim.run(2 * SECOND);
    expect(pauses(sim).slice(2)).toEqual([4]);
    expect(sim.record.removals).toEqual([]);
    sim.weather.hold = { kind: "none" };
    await sim.run(2 * SECOND);
    expect(sim.record.removals).not.toBeEmpty();
  });
});

test.each([
  ["fails", async () => Promise.reject(new HostError("stat", "cannot measure the root"))],
  ["hangs for ten seconds", async (sim: Simulation) => sim.clock.sleep(10_000)],
] as const)(
  "a disk whose measurement %s does not keep another one from its pass",
  async (_, answer) => {
    const nodefs = aDisk({ roles: ["nodefs"], path: "/var/lib/kubelet" });
    const disks = [aDisk({ roles: ["imagefs", "containerfs"], device: "8:2" }), nodefs];
    const state = { isBroken: false };
    const sim = await aNode(40, {
      disks,
      refit: (engine, own) => {
        const { disk } = engine.observe;
        const measure: typeof disk.measure = async (path) => {
          if (state.isBroken && path === nodefs.path) {
            await answer(own);
            throw new HostError("stat", "cannot measure the root");
          }
          return disk.measure(path);
        };
        return { ...engine, observe: { ...engine.observe, disk: { ...disk, measure } } };
      },
    });
    state.isBroken = true;
    sim.fill(14);
    await sim.run(41 * SECOND);
    expect(sim.passes("pressure")[0]).toMatchObject({ images: { end: "target-reached" } });
    const loop = sim.agent.state().loops.find(({ name }) => name === "pressure");
    expect(loop?.lastError).toContain("cannot measure the root");
  },
);

const kubelets = { compat: "kubelet", accounting: "reported", whenFutile: "collect" } as const;

test.each([
  ["ends for another disk that needs containers removed", {}, "stopped"],
  ["goes on beside it with the kubelet's rules", kubelets, "candidates-exhausted"],
] as const)("a pass that removes images a minute each %s", async (_, change, end) => {
  const limits = { ...simLimits, images: { ...simLimits.images, ...change } };
  const sim = await aNode(40, {
    weather: { limits },
    disks: [
      aDisk({ roles: ["imagefs"], device: "8:2" }),
      aDisk({ roles: ["nodefs", "containerfs"], path: "/var/lib/kubelet" }),
    ],
    refit: (engine, { clock }) => ({
      ...engine,
      writer: surrounded(engine.writer, async (name, __, ask) => {
        if (name === "removeImage") await clock.sleep(MINUTE);
        return ask();
      }),
    }),
  });
  sim.fill(2);
  await sim.run(15 * SECOND);
  sim.fill(5, sim.node.disks[1]);
  await sim.run(2 * MINUTE);
  const isOver = sim.passes("pressure").length > 0;
  expect(isOver).toBe(end === "stopped");
  await sim.run(HOUR);
  const [first, second] = sim.passes("pressure");
  expect(first).toMatchObject({ containers: null, images: { end }, error: null });
  expect(second).toMatchObject({ containers: { end: "done" }, error: null });
});

describe("the pause before the next check", () => {
  test.each([
    ["is the period far from the threshold", 60n * GIB, 10],
    ["is what a disk at 1 GiB/s takes to the threshold", 17n * GIB, 2],
    ["is 500 ms just above the threshold", 15n * GIB + MIB, 0.5],
  ])("%s", async (_, free, pause) => {
    const sim = await aNode(0, {
      weather: { limits: withThresholds(aThreshold("imagefs.available", 15)) },
      disks: [aDisk({ capacity: 100n * GIB })],
    });
    const disk = sim.node.imageDisk();
    disk.others += available(sim.node, disk) - free;
    await sim.run(10 * SECOND);
    const { statfs, runtimeCalls } = sim.record;
    await sim.run(100 * SECOND);
    expect(sim.record.statfs - statfs).toBe(100 / pause);
    expect(sim.record.runtimeCalls).toBe(runtimeCalls);
  });

  test("goes by the other thresholds while one cannot be relieved, without passes in between", async () => {
    const thresholds = [aThreshold("imagefs.available", 15), aThreshold("nodefs.available", 10)];
    const sim = await aNode(0, { weather: { limits: withThresholds(...thresholds) } });
    sim.fill(10.1);
    await sim.run(2 * MINUTE);
    const passes = sim.passes("pressure").length;
    const { statfs } = sim.record;
    await sim.run(MINUTE);
    expect(sim.record.statfs - statfs).toBeGreaterThan(100);
    expect(sim.passes("pressure").length - passes).toBe(6);
  });
});

describe("on a node whose images take fifteen seconds to list,", () => {
  async function aSlowNode(
    periods: NonNullable<SimOptions["periods"]>,
    disks = [
      aDisk({ roles: ["imagefs", "containerfs"], device: "8:2" }),
      aDisk({ roles: ["nodefs"], path: "/var/lib/kubelet" }),
    ],
  ) {
    const state = { isSlow: false };
    const sim = await aNode(40, {
      periods,
      disks,
      refit: (engine, { clock }) => {
        const { runtime } = engine.observe;
        const listImages: typeof runtime.listImages = async (signal) => {
          if (state.isSlow) await clock.sleep(15_000, signal);
          return runtime.listImages(signal);
        };
        return { ...engine, observe: { ...engine.observe, runtime: { ...runtime, listImages } } };
      },
    });
    state.isSlow = true;
    return sim;
  }

  test("pressure that cannot be relieved leaves other passes the time to observe and remove", async () => {
    const sim = await aSlowNode({ ...ONLY_PRESSURE, "image-gc": MINUTE });
    sim.fill(5, sim.node.disks[1]);
    const { images } = sim.weather.limits;
    sim.weather.limits = { ...simLimits, images: { ...images, storeBudgetBytes: 35_000n * MIB } };
    await sim.run(10 * MINUTE);
    expect(sim.passes("pressure").length).toBeGreaterThan(5);
    expect(sim.record.removals).toHaveLength(5);
  });

  test("pressure of images alone leaves a container pass that time too", async () => {
    const sim = await aSlowNode({ ...ONLY_PRESSURE, "container-gc": MINUTE }, [
      aDisk({ roles: ["imagefs"], device: "8:2" }),
      aDisk({ roles: ["nodefs", "containerfs"], path: "/var/lib/kubelet" }),
    ]);
    const image = imageOf(aRelease("image1", 1));
    const [, deleted] = ["live", "deleted"].map((pod) => {
      const sandbox = sim.node.addSandbox(pod, image);
      sim.node.addContainer(sandbox, image);
      return sandbox;
    });
    if (deleted === undefined) throw new Error("there are two");
    sim.node.endPod(deleted);
    sim.node.pods.delete(deleted.podUid);
    const { images } = sim.weather.limits;
    sim.weather.limits = { ...simLimits, images: { ...images, minimumAge: hours(9) } };
    sim.fill(5);
    await sim.run(20 * MINUTE);
    expect(sim.passes("pressure").length).toBeGreaterThan(5);
    expect(sim.node.containers.size).toBe(1);
  });

  test("pressure does not wait for an observation that only records", async () => {
    const sim = await aSlowNode({ ...ONLY_PRESSURE, "image-detection": MINUTE });
    for (let step = 0; step < 700 && sim.record.runtimeCalls === 0; step += 1) await sim.run(100);
    const before = sim.record.runtimeCalls;
    for (let step = 0; step < 700 && sim.record.runtimeCalls === before; step += 1)
      await sim.run(100);
    sim.fill(14);
    await sim.run(2 * MINUTE);
    const [first] = sim.passes("pressure");
    expect(first).toMatchObject({ images: { end: "target-reached" } });
    expect(first?.steps.map(({ name }) => name)).not.toContain("turn");
    const loop = sim.agent.state().loops.find(({ name }) => name === "image-detection");
    expect(loop).toMatchObject({ lastError: null, consecutiveFailures: 0 });
  });
});

test("failures in passes close together count once in a period, so that they raise no more events", async () => {
  const sim = await aNode(40);
  sim.weather.runtimeIsAway = true;
  sim.fill(14);
  const failures = () =>
    sim.agent.state().loops.find(({ name }) => name === "pressure")?.consecutiveFailures;
  await sim.run(10 * SECOND);
  expect(pauses(sim).length).toBeGreaterThan(2);
  expect(failures()).toBe(1);
  expect(sim.record.events.map(({ reason }) => reason)).toEqual(["EvictionThresholdMet"]);
  await sim.run(10 * SECOND);
  expect(failures()).toBe(2);
  expect(sim.record.events.map(({ reason }) => reason)).toContain("ImageGCFailed");
});

test("without an observation the agent tries to observe once a pressure period", async () => {
  const sim = new Simulation({ periods: ONLY_PRESSURE, weather: { runtimeIsAway: true } });
  sim.start();
  await sim.run(MINUTE);
  expect(sim.agent.state().seen).toBeNull();
  sim.weather.runtimeIsAway = false;
  await sim.run(10 * SECOND);
  expect(sim.agent.state().seen).not.toBeNull();
});
