import { describe, expect, test } from "bun:test";

import { failureOf } from "../../src/gc/pass-warnings.ts";
import type { PassRequest } from "../../src/gc/pass.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Pass } from "../../src/model/pass.ts";
import { hours, instant, since, toMs, watched } from "../../src/model/time.ts";
import { aPodRecord, noLogs, reading } from "../support/build/pods.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aSandbox,
  defaultLimits,
  GIB,
  spaceTarget,
} from "../support/build/values.ts";
import {
  type FakeEngine,
  fakeEngine,
  type FakeWorld,
  runFakePass,
} from "../support/fake-engine.ts";

const gc = async (
  fake: FakeEngine,
  change: Partial<PassRequest> = {},
  signal?: AbortSignal,
): Promise<Pass> =>
  (await runFakePass(fake, { purpose: { kind: "all-unused" }, ...change }, signal)).pass;

const limitsOf = (maxRemovalsPerPass: number | null): Limits => ({
  ...defaultLimits,
  images: { ...defaultLimits.images, minimumAge: 0n as never, maxRemovalsPerPass },
  containers: { ...defaultLimits.containers, maximumPerPodContainer: 0 },
});

/** Two dead instances beside a running one, and three images that nothing uses. */
const crowded = (maxRemovalsPerPass: number | null): Partial<FakeWorld> => ({
  limits: limitsOf(maxRemovalsPerPass),
  images: ["used", "a", "b", "c"].map((name) => anImage(name)),
  sandboxes: [aSandbox("pod")],
  containers: (["running", "exited", "exited"] as const).map((state, index) =>
    aContainer(`instance-${index}`, {
      name: "web",
      sandboxId: aSandbox("pod").id,
      podUid: aSandbox("pod").podUid,
      imageId: anImage("used").id,
      state,
    }),
  ),
});

const kinds = ({ writes }: FakeEngine): readonly string[] =>
  writes.map((write) => write.split(" ")[0] ?? "");

test("unreadable log directories keep nothing else, and are a failure, of a dry run too", async () => {
  const logs = { kind: "failed", message: "cannot open /l" } as const;
  const fake = fakeEngine({ ...crowded(null), logs });
  const failure = "no log is deleted: cannot open /l";
  expect(failureOf(await gc(fake, { dryRun: true }))).toBe(failure);
  const pass = await gc(fake);
  expect(kinds(fake)).toHaveLength(5);
  expect(pass.error).toBeNull();
  expect(failureOf(pass)).toBe(failure);
});

test("a clock that is set during a pass does not count as time that it took", async () => {
  const fake = fakeEngine(crowded(null));
  fake.world.before = (method) => {
    if (method === "ListImages") fake.world.wall = instant(fake.world.wall - hours(2));
  };
  const { startedAt, endedAt } = await gc(fake);
  expect(toMs(since(endedAt, startedAt))).toBeWithin(0, 60_000);
});

describe("the limit of removals in one pass", () => {
  test("counts containers and images together, and leaves the rest to the next pass", async () => {
    const fake = fakeEngine(crowded(3));
    const pass = await gc(fake);
    expect(kinds(fake)).toEqual(["RemoveContainer", "RemoveContainer", "RemoveImage"]);
    expect(pass.images?.end).toBe("removal-limit");
  });

  test("counts log directories, too", async () => {
    const podLogs = [{ entry: "default_gone_uid-gone", uid: aSandbox("gone").podUid }];
    const absent = aPodRecord({ absentSinceWatched: watched(0n) });
    const fake = fakeEngine({
      ...crowded(3),
      logs: { ...noLogs, podLogs },
      pods: reading("kubelet-dir", aSandbox("pod").podUid),
      ledger: aLedger({ pods: new Map([[aSandbox("gone").podUid, absent]]) }),
    });
    await gc(fake);
    expect(kinds(fake).filter((kind) => kind !== "RemoveLink")).toEqual([
      "RemoveContainer",
      "RemoveContainer",
      "RemovePodLogs",
    ]);
  });

  test("is half for images under pressure, so that containers that die all the time do not use it up in each pass", async () => {
    const signal = "imagefs.available" as const;
    const target = spaceTarget(20n * GIB, 10n * GIB);
    const pressure: Partial<PassRequest> = {
      purpose: { kind: "pressure", signals: [signal] },
      retarget: async () => [{ ...target, trigger: { kind: "pressure", signal } }],
    };
    const fake = fakeEngine(crowded(2));
    await gc(fake, pressure);
    expect(kinds(fake)).toEqual(["RemoveContainer", "RemoveImage"]);
    const inUse = fakeEngine({ ...crowded(2), images: [anImage("used")] });
    await gc(inUse, pressure);
    expect(kinds(inUse)).toEqual(["RemoveContainer", "RemoveContainer"]);
  });

  test("limits the plan's estimate, too", async () => {
    const fake = fakeEngine(crowded(3));
    const { plan } = await gc(fake, { dryRun: true });
    expect(plan.images?.candidates.map(({ expected }) => expected)).toEqual([true, false, false]);
    expect(plan.images?.notes).toEqual([{ kind: "removal-limit", limit: 3 }]);
  });

  test("leaves to images what containers whose removal was refused did not use", async () => {
    const before = async (method: string): Promise<void> => {
      if (method === "RemoveContainer") throw new RuntimeError("failed", "refused");
    };
    const fake = fakeEngine({ ...crowded(1), before });
    await gc(fake);
    expect(kinds(fake)).toEqual(["RemoveContainer", "RemoveContainer", "RemoveImage"]);
  });
});

test("a pass that is stopped while it observes the node again after its containers is stopped, not failed", async () => {
  const stop = new AbortController();
  const removed: string[] = [];
  const before = async (method: string): Promise<void> => {
    if (method === "RemoveContainer") removed.push(method);
    if (method !== "ImageFsInfo" || removed.length === 0) return;
    stop.abort();
    throw new RuntimeError("cancelled", "the call was cancelled");
  };
  const pass = await gc(fakeEngine({ ...crowded(null), before }), {}, stop.signal);
  expect(pass).toMatchObject({
    error: null,
    containers: { end: "done" },
    images: { end: "stopped", items: [] },
  });
  expect(failureOf(pass)).toBeNull();
});

test("a pass tells how many dead containers it saw", async () => {
  const fake = fakeEngine(crowded(null));
  expect((await runFakePass(fake, { dryRun: true })).seen?.deadContainers).toBe(2);
});

test.each([
  ["side by side", "none", 2],
  ["one after the other with compat kubelet", "kubelet", 1],
] as const)("containers are removed %s", async (_, compat, most) => {
  const [open, atOnce]: [Set<string>, number[]] = [new Set(), []];
  const limits = limitsOf(null);
  const pods = ["a", "b"].map((name) => aSandbox(name));
  const fake = fakeEngine({
    images: [anImage("used")],
    sandboxes: pods,
    containers: pods.flatMap(({ id, podUid }) =>
      (["running", "exited"] as const).map((state) =>
        aContainer(`${podUid}-${state}`, { name: "web", sandboxId: id, podUid, state }),
      ),
    ),
    limits: { ...limits, containers: { ...limits.containers, compat } },
  });
  fake.world.before = async (method, id) => {
    if (method !== "RemoveContainer") return;
    atOnce.push(open.add(id).size);
    await fake.engine.timer.sleep(100, new AbortController().signal);
    open.delete(id);
  };
  await gc(fake, { images: false });
  expect([atOnce.length, Math.max(...atOnce)]).toEqual([2, most]);
});

test("the node is observed again after its containers, although one of them is kept after all", async () => {
  const fake = fakeEngine(crowded(null));
  fake.world.before = async (method, id) => {
    if (method !== "RemoveContainer") return;
    fake.world.containers = fake.world.containers.map((one) =>
      one.id === id ? one : { ...one, state: "running" },
    );
    await fake.engine.timer.sleep(5_000, new AbortController().signal);
  };
  const { containers, steps } = await gc(fake);
  expect(containers?.containers.map(({ result }) => result.kind).toSorted()).toEqual([
    "removed",
    "skipped",
  ]);
  expect(steps.filter(({ name }) => name === "observe")).toHaveLength(2);
});
