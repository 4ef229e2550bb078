// A pass while containers are being created: how long it waits, for which, what it removes then, and what it says.

import { describe, expect, test } from "bun:test";

import type { PassRequest } from "../../src/gc/pass.ts";
import type { ContainerMark } from "../../src/model/ledger.ts";
import type { Pass } from "../../src/model/pass.ts";
import { type Duration, duration, instant, minutes, seconds, toMs } from "../../src/model/time.ts";
import {
  aContainer,
  aFilesystem,
  anImage,
  aSandbox,
  GIB,
  idOf,
  NOW,
  spaceTarget,
  withLimits,
} from "../support/build/values.ts";
import { aNodeOf, type FakeEngine, type FakeWorld, runFakePass } from "../support/fake-engine.ts";

const pod = aSandbox("pod", { createdAt: instant(NOW - seconds(60)) });
const mark: ContainerMark = { podUid: pod.podUid, name: "web", at: instant(NOW - seconds(1)) };

/** Three old images that nothing uses, and a pod whose container is being created. */
const aNode = (change: Partial<FakeWorld> = {}): FakeEngine =>
  aNodeOf(["a", "b", "c"], {
    sandboxes: [aSandbox("a"), pod],
    marks: [mark],
    limits: withLimits({ minimumAge: duration(0n) }),
    ...change,
  });

const ALL: Partial<PassRequest> = { purpose: { kind: "all-unused" } };
const target = spaceTarget(20n * GIB, 10n * GIB);
const PRESSURE: Partial<PassRequest> = {
  kind: "pressure",
  purpose: { kind: "pressure", signals: ["imagefs.available"] },
  retarget: async () => [target],
};

const pass = async (
  fake: FakeEngine,
  change: Partial<PassRequest>,
  signal?: AbortSignal,
): Promise<Pass> => (await runFakePass(fake, { containers: "none", ...change }, signal)).pass;

const waitedMs = ({ steps }: Pass): number => {
  const step = steps.find(({ name }) => name === "creation");
  return step === undefined ? 0 : toMs(step.took);
};
const elapsed = ({ world }: FakeEngine): Duration => (world.wall - NOW) as Duration;

/** Changes the world once that much time has passed. */
const after = (span: Duration, change: (world: FakeWorld) => void): FakeEngine => {
  const fake = aNode();
  let isDone = false;
  fake.world.before = () => {
    if (isDone || fake.world.wall - NOW < span) return;
    isDone = true;
    change(fake.world);
  };
  return fake;
};
const create = (world: FakeWorld): void => {
  const its = { name: "web", sandboxId: pod.id, imageId: idOf("a"), createdAt: world.wall };
  world.containers = [...world.containers, aContainer("web", its)];
};

describe("a pass while a container is being created", () => {
  for (const [kind, request] of [
    ["of gc", ALL],
    ["under pressure", PRESSURE],
  ] as const)
    test(`${kind} keeps its image if the container is listed in time, and goes on at once`, async () => {
      const fake = after(seconds(3), create);
      const done = await pass(fake, request);
      expect(fake.writes).toEqual([`RemoveImage ${idOf("b")}`, `RemoveImage ${idOf("c")}`]);
      expect(waitedMs(done)).toBeGreaterThanOrEqual(3_000);
      expect(waitedMs(done)).toBeLessThan(5_000);
    });

  test("is held up in its middle, too", async () => {
    const fake = aNode({ marks: [] });
    fake.world.before = async (method) => {
      if (method !== "RemoveImage") return;
      // The kubelet begins while the first image is removed.
      await fake.engine.timer.sleep(1_000, new AbortController().signal);
      fake.world.marks = [{ ...mark, at: fake.world.wall }];
    };
    const done = await pass(fake, ALL);
    expect(fake.writes).toEqual([`RemoveImage ${idOf("a")}`]);
    expect(done.images?.end).toBe("blocked");
    expect(waitedMs(done)).toBe(30_000);
    expect(fake.world.ledger.heldUpPasses).toBe(0);
    // It counts from when it was first seen, in later passes too.
    const [web, ...others] = [...fake.world.ledger.creations.values()].filter(({ name }) => name);
    expect([web?.name, others]).toEqual(["web", []]);
  });

  test("that it first saw after minutes in which the runtime was silent ends without a removal", async () => {
    const fake = aNode();
    let isSilent = true;
    fake.world.before = async (method) => {
      if (method !== "PodSandboxStatus" || !isSilent) return;
      isSilent = false;
      await fake.engine.timer.sleep(125_000, new AbortController().signal);
    };
    expect((await pass(fake, ALL)).images?.end).toBe("blocked");
    expect(fake.writes).toEqual([]);
  });

  test("treats an image that was replaced while it waited as new", async () => {
    const fake = after(seconds(1), (world) => {
      const all = world.images;
      world.images = all.filter(({ id }) => id !== idOf("a"));
      const { before } = world;
      world.before = () => {
        if (world.wall - NOW < seconds(3)) return;
        Object.assign(world, { images: all, marks: [], before });
      };
    });
    fake.world.limits = withLimits({ minimumAge: minutes(2) });
    await pass(fake, ALL);
    expect(fake.writes).toEqual(["b", "c"].map((word) => `RemoveImage ${idOf(word)}`));
  });

  const heldUp = (fake: FakeEngine, heldUpPasses: number): FakeEngine => {
    fake.engine.memory.replace({ ...fake.world.ledger, heldUpPasses });
    return fake;
  };

  test("counts as held up if it begins before the first image went", async () => {
    const fake = heldUp(aNode({ marks: [] }), 1);
    let looks = 0;
    fake.world.before = (method) => {
      if (method === "marks" && (looks += 1) === 2)
        fake.world.marks = [{ ...mark, at: fake.world.wall }];
    };
    await pass(fake, ALL);
    expect(fake.writes).toEqual([]);
    expect(fake.world.ledger.heldUpPasses).toBe(2);
  });

  test("does not count as held up by it if a hold is in force as well", async () => {
    const hold = { kind: "held", until: null, since: null, reason: "" } as const;
    const fake = heldUp(aNode({ hold }), 2);
    await pass(fake, ALL);
    expect(fake.world.ledger.heldUpPasses).toBe(0);
  });

  test("ends after 30 s; the third in a row goes on after its wait", async () => {
    const fake = aNode();
    const ends: unknown[] = [];
    for (let count = 0; count < 4; count += 1) {
      // Another one each time, so that no creation reaches its own end.
      fake.world.marks = [{ ...mark, name: `web${count}`, at: fake.world.wall }];
      fake.world.images = [...fake.world.images, anImage(`new${count}`)];
      const done = await pass(fake, ALL);
      ends.push([done.images?.end, waitedMs(done), fake.world.ledger.heldUpPasses]);
    }
    // Often at first, then every two seconds.
    expect(fake.calls.filter((call) => call === "marks").length / 4).toBeWithin(25, 30);
    expect(ends).toEqual([
      ["blocked", 30_000, 1],
      ["blocked", 30_000, 2],
      ["candidates-exhausted", 30_000, 0],
      ["blocked", 30_000, 1],
    ]);
  });

  test("under pressure goes on after 5 s, and waits for no creation twice", async () => {
    const fake = aNode();
    fake.world.freed = () => 0n;
    const first = await pass(fake, PRESSURE);
    expect(waitedMs(first)).toBe(5_000);
    expect(fake.writes.length).toBeGreaterThan(0);
    fake.world.images = [anImage("used"), anImage("d")];
    expect(waitedMs(await pass(fake, PRESSURE))).toBe(0);
    fake.world.images = [anImage("used"), anImage("e")];
    fake.world.marks = [...(fake.world.marks ?? []), { ...mark, name: "job" }];
    expect(waitedMs(await pass(fake, PRESSURE))).toBe(5_000);
  });

  test("measures again after the wait and takes the new target", async () => {
    const fake = after(seconds(2), create);
    let asked = 0;
    const retarget = async () => ((asked += 1) === 1 ? [target] : []);
    const done = await pass(fake, { ...PRESSURE, retarget });
    expect(fake.writes).toEqual([]);
    expect(done.plan.images?.targets).toEqual([]);
  });

  test.each([
    ["a pass under pressure waits for it", "hurry"],
    ["an agent cannot relieve a disk meanwhile", "soonest"],
  ] as const)("does not wait if %s, which does not count as held up", async (_, by) => {
    const fake = aNode();
    const done = await pass(fake, { ...ALL, [by]: AbortSignal.abort() });
    expect([done.images?.end, waitedMs(done)]).toEqual(["blocked", 0]);
    expect(fake.world.ledger.heldUpPasses).toBe(0);
  });

  test("begins to count the passes in a row that were held up anew after one that had nothing to remove", async () => {
    const fake = aNode();
    await pass(fake, ALL);
    expect(fake.world.ledger.heldUpPasses).toBe(1);
    fake.world.filesystem = aFilesystem({ availableBytes: 90n * GIB });
    expect((await pass(fake, {})).images?.end).toBe("nothing-to-do");
    expect(fake.world.ledger.heldUpPasses).toBe(0);
  });

  test("collects containers first", async () => {
    const dead = [1, 2].map((attempt) =>
      aContainer(`dead-${attempt}`, {
        name: "job",
        state: "exited",
        attempt,
        imageId: idOf("used"),
      }),
    );
    const fake = aNode({ containers: [aContainer("always", { imageId: idOf("used") }), ...dead] });
    fake.world.before = (method) => {
      if (method === "RemoveContainer") expect(elapsed(fake)).toBe(seconds(0));
    };
    const done = await pass(fake, { ...ALL, containers: "all" });
    expect(done.containers).toMatchObject({
      end: "done",
      containers: [{ result: { kind: "removed" } }],
    });
    expect(waitedMs(done)).toBe(30_000);
  });

  test("waits for nothing if nothing would be removed, and does not read the marks", async () => {
    const fake = aNode({ filesystem: aFilesystem({ availableBytes: 90n * GIB }) });
    expect((await pass(fake, {})).images?.end).toBe("nothing-to-do");
    expect(elapsed(fake)).toBe(seconds(0));
    expect(fake.calls).not.toContain("marks");
  });

  test("says what it waits for, and until when", async () => {
    const fake = after(seconds(1), create);
    const waits: (string | null)[] = [];
    await pass(fake, { ...ALL, waits: (block) => waits.push(block?.kind ?? null) });
    expect(waits).toEqual(["pod-starting", null]);
    expect(fake.said).toContainEqual(
      expect.stringMatching(/^Image removal waits: 1 container being created \(web in sandbox/),
    );
  });
});

test("where the kubelet's pods cannot be read, a new sandbox holds up a pass until crigc has known it for 10 s", async () => {
  const fake = aNode({ marks: null });
  const done = await pass(fake, ALL);
  expect(waitedMs(done)).toBeGreaterThanOrEqual(10_000);
  expect(waitedMs(done)).toBeLessThan(13_000);
  expect(fake.writes).toHaveLength(3);
});
