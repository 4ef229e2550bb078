import { expect, test } from "bun:test";

import { failureOf } from "../../src/gc/pass-warnings.ts";
import type { PassRequest } from "../../src/gc/pass.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Pass } from "../../src/model/pass.ts";
import { hours, instant, since, toMs } from "../../src/model/time.ts";
import { aPodRecord, reading } from "../support/build/pods.ts";
import { aContainer, aLedger, anImage, aSandbox, defaultLimits } from "../support/build/values.ts";
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

const limitsOf = (): Limits => ({
  ...defaultLimits,
  images: { ...defaultLimits.images, minimumAge: 0n as never },
  containers: { ...defaultLimits.containers, maximumPerPodContainer: 0 },
});

/** Two dead instances beside a running one, and three images that nothing uses. */
const crowded = (): Partial<FakeWorld> => ({
  limits: limitsOf(),
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
  const fake = fakeEngine({ ...crowded(), logs });
  const failure = "no log is deleted: cannot open /l";
  expect(failureOf(await gc(fake, { dryRun: true }))).toBe(failure);
  const pass = await gc(fake);
  expect(kinds(fake)).toHaveLength(5);
  expect(pass.error).toBeNull();
  expect(failureOf(pass)).toBe(failure);
});

test("a clock that is set during a pass does not count as time that it took", async () => {
  const fake = fakeEngine(crowded());
  fake.world.before = (method) => {
    if (method === "ListImages") fake.world.wall = instant(fake.world.wall - hours(2));
  };
  const { startedAt, endedAt } = await gc(fake);
  expect(toMs(since(endedAt, startedAt))).toBeWithin(0, 60_000);
});

test("a pass that is stopped while it lists the node again after its containers is stopped, not failed", async () => {
  const stop = new AbortController();
  const removed: string[] = [];
  const before = async (method: string): Promise<void> => {
    if (method === "RemoveContainer") removed.push(method);
    if (method !== "ListImages" || removed.length === 0) return;
    stop.abort();
    throw new RuntimeError("cancelled", "the call was cancelled");
  };
  const pass = await gc(fakeEngine({ ...crowded(), before }), {}, stop.signal);
  expect(pass).toMatchObject({
    error: null,
    containers: { end: "done" },
    images: { end: "stopped", items: [] },
  });
  expect(failureOf(pass)).toBeNull();
});

test("a pass tells how many dead containers it saw", async () => {
  const fake = fakeEngine(crowded());
  expect((await runFakePass(fake, { dryRun: true })).seen?.deadContainers).toBe(2);
});

test.each([
  ["goes with the last of its containers", false],
  ["stays if one of its containers runs again", true],
])("an image %s", async (_, runsAgain) => {
  const fake = fakeEngine(crowded());
  fake.world.containers = fake.world.containers.map((one) =>
    one.state === "running" ? one : { ...one, imageId: anImage("a").id },
  );
  fake.world.before = async (method, id) => {
    if (method !== "RemoveContainer") return;
    if (runsAgain)
      fake.world.containers = fake.world.containers.map((one) =>
        one.id === id ? one : { ...one, state: "running" },
      );
    await fake.engine.timer.sleep(5_000, new AbortController().signal);
  };
  const { containers } = await gc(fake);
  expect(containers?.containers.map(({ result }) => result.kind)).toEqual(
    Array(runsAgain ? 1 : 2).fill("removed"),
  );
  expect(fake.writes.includes(`RemoveImage ${anImage("a").id}`)).toBe(!runsAgain);
  expect(fake.writes).toContain(`RemoveImage ${anImage("b").id}`);
});

test("an image is kept if only the lists for sandboxes name its container, although no sandbox is removed", async () => {
  const gone = aSandbox("gone", { state: "not-ready" });
  const containers = crowded().containers?.slice(0, 1) ?? [];
  const fake = fakeEngine({
    ...crowded(),
    containers,
    sandboxes: [aSandbox("pod"), gone],
    pods: reading("kubelet-dir", "uid-pod"),
    ledger: aLedger({
      pods: new Map([[gone.podUid, aPodRecord({ absentSinceUptime: 0n as never })]]),
    }),
  });
  let lists = 0;
  fake.world.before = (method) => {
    if (method !== "ListContainers" || (lists += 1) !== 2) return;
    const added = aContainer("new", { imageId: anImage("a").id, sandboxId: gone.id });
    fake.world.containers = [...containers, added];
    fake.world.sandboxes = [aSandbox("pod"), { ...gone, state: "ready" }];
  };
  await gc(fake);
  expect(fake.writes).toEqual(["b", "c"].map((name) => `RemoveImage ${anImage(name).id}`));
});
