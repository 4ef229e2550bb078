import { describe, expect, test } from "bun:test";

import { RuntimeError } from "../../src/model/errors.ts";
import { podUid } from "../../src/model/ids.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { duration, minutes, seconds } from "../../src/model/time.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSnapshot,
  GIB,
  idOf,
  MIB,
  NOW,
  recordsOf,
  withLimits,
} from "../support/build/values.ts";
import {
  type FakeEngine,
  fakeEngine,
  type FakeWorld,
  runFakePass,
} from "../support/fake-engine.ts";

interface Disk {
  /** What a removal gives back, and after how long. */
  readonly frees?: (image: Image) => bigint;
  readonly lateMs?: number;
  /** What was removed comes free with a commit. */
  readonly freesOnCommit?: true;
  /** What others write a second. */
  readonly written?: bigint;
  readonly callMs?: number;
  /** Freed blocks refill it first. */
  readonly reserve?: bigint;
}

const NAMES = Array.from({ length: 20 }, (_, at) => `image${String(at).padStart(2, "0")}`);

/** 20 images of 2 GiB on a disk of 100 GiB, 10 GiB of which are available. */
function aNode(disk: Disk = {}, change: Partial<FakeWorld> = {}): FakeEngine {
  const { frees = ({ sizeBytes }) => sizeBytes, lateMs = 0, written = 0n, reserve = 0n } = disk;
  const { freesOnCommit = false } = disk;
  const due: { atNs: bigint; readonly bytes: bigint }[] = [];
  const fake: FakeEngine = fakeEngine({
    images: [...NAMES, "used"].map((name) => anImage(name, { sizeBytes: 2n * GIB })),
    containers: [aContainer("always", { imageId: idOf("used") })],
    ledger: aLedger({ images: recordsOf(NAMES, { sizeBytes: 2n * GIB }) }),
    limits: withLimits({ highPercent: 85, lowPercent: 80, minimumAge: duration(0n) }),
    writeTakes: duration(BigInt(disk.callMs ?? 10) * 1_000_000n),
    freed: (image) => {
      const atNs = freesOnCommit ? 2n ** 63n : fake.world.uptime + BigInt(lateMs) * 1_000_000n;
      due.push({ atNs, bytes: frees(image) });
      return 0n;
    },
    ...change,
  });
  const startNs = fake.world.uptime;
  const first = fake.world.filesystem;
  const plain = { ...fake.engine.observe.disk };
  const now = () => {
    const freed = due.reduce(
      (sum, { atNs, bytes }) => (atNs <= fake.world.uptime ? sum + bytes : sum),
      0n,
    );
    const others = (written * (fake.world.uptime - startNs)) / 1_000_000_000n;
    const free = (first.freeBytes ?? first.availableBytes) + freed - others;
    const freeBytes = free > 0n ? free : 0n;
    const available = freeBytes - reserve;
    const availableBytes = available > 0n ? available : 0n;
    return { freeBytes, availableBytes, reservedBytes: reserve, freesOnCommit };
  };
  Object.assign(fake.engine, {
    commit: async () => {
      fake.calls.push("commit");
      for (const one of due) one.atNs = fake.world.uptime;
    },
  });
  Object.assign(fake.engine.observe.disk, {
    measure: async (path: string) => ({ ...(await plain.measure(path)), ...now() }),
    filesystems: async (given: never) =>
      (await plain.filesystems(given)).map((one) => ({ ...one, ...now() })),
  });
  return fake;
}

const run = async (fake: FakeEngine) => {
  const { pass } = await runFakePass(fake, { containers: "none" });
  return { images: pass.images!, count: fake.writes.length };
};

const called = ({ calls }: FakeEngine, method: string): number =>
  calls.filter((one) => one === method).length;

describe("a pass for disk usage", () => {
  test("removes as much as its target needs", async () => {
    const { images, count } = await run(aNode());
    // 10 GiB are missing.
    expect([images.end, count]).toEqual(["target-reached", 5]);
    expect(images.measuredFreedBytes).toBe(10n * GIB);
  });

  test("removes one image at most more than needed if space appears two seconds late", async () => {
    const { images, count } = await run(aNode({ lateMs: 2_000 }));
    expect(images.end).toBe("target-reached");
    expect(count).toBeLessThanOrEqual(6);
  });

  test("removes five images at most if space never appears", async () => {
    const fake = aNode({ frees: () => 0n });
    const { images, count } = await run(fake);
    expect(count).toBeLessThanOrEqual(5);
    expect(["nothing-freed", "estimated"]).toContain(images.end);
  });

  test("removes by the estimates beside a writer, not by what the writer leaves", async () => {
    const { images, count } = await run(aNode({ written: 100n * MIB, callMs: 3_000 }));
    expect(images.end).toBe("estimated");
    expect(count).toBeLessThanOrEqual(6);
  });

  test("brings about the commit for which a filesystem waits, before it waits itself", async () => {
    const filesystem = aFilesystem({ availableBytes: 14n * GIB });
    const fake = aNode({ freesOnCommit: true }, { filesystem });
    const startNs = fake.world.uptime;
    const { images, count } = await run(fake);
    expect([images.end, count, called(fake, "commit")]).toEqual(["target-reached", 3, 1]);
    expect(fake.world.uptime - startNs < seconds(1)).toBe(true);
  });

  test("waits ten seconds for space, and not again within an hour after a wait that brought none", async () => {
    const filesystem = aFilesystem({ availableBytes: 14n * GIB });
    const fake = aNode({ freesOnCommit: true, frees: () => 0n }, { filesystem });
    const waited = async () => {
      const startNs = fake.world.uptime;
      // Each pass judges anew what others do to its disk.
      fake.engine.passes.streaks.clear();
      expect(await run(fake)).toMatchObject({ images: { end: "estimated" } });
      return fake.world.uptime - startNs >= seconds(10);
    };
    expect([await waited(), called(fake, "commit")]).toEqual([true, 1]);
    fake.elapse(Number(minutes(59) / 1_000_000n));
    expect([await waited(), called(fake, "commit")]).toEqual([false, 1]);
    fake.elapse(Number(minutes(1) / 1_000_000n));
    expect([await waited(), called(fake, "commit")]).toEqual([true, 2]);
  });

  test.each([
    [
      "five removals across passes that gave nothing back to a disk",
      "8:1",
      [3, 2],
      "nothing-freed",
    ],
    ["not those that gave nothing back to another one", "8:2", [3, 3], "estimated"],
  ])("ends by %s", async (_, device, counts, end) => {
    const filesystem = aFilesystem({ availableBytes: 14n * GIB });
    const fake = aNode({ frees: () => 0n }, { filesystem });
    const first = await run(fake);
    fake.world.filesystem = { ...filesystem, device };
    const { images, count } = await run(fake);
    expect([first.images.end, images.end]).toEqual(["estimated", end as typeof images.end]);
    expect([first.count, count - first.count]).toEqual(counts);
  });

  test("counts what refills root's reserve as given back", async () => {
    const filesystem = aFilesystem({ availableBytes: 0n, freeBytes: 0n, reservedBytes: 5n * GIB });
    const { images, count } = await run(aNode({ reserve: 5n * GIB }, { filesystem }));
    expect(images.end).toBe("target-reached");
    expect([count, images.availableAfter]).toEqual([13, 21n * GIB]);
    expect(images.measuredFreedBytes).toBe(26n * GIB);
  });

  test("removes none for a disk that others fill", async () => {
    const filesystem = aFilesystem({ availableBytes: GIB, imageUsedBytes: 2n * GIB });
    const small = NAMES.map((name) => anImage(name, { sizeBytes: 10n * MIB }));
    const { images, count } = await run(aNode({}, { filesystem, images: small }));
    expect([images.end, count]).toEqual(["futile", 0]);
  });

  test("removes no sixth image either if pressure began before the fifth was judged", async () => {
    const limits = withLimits({ highPercent: 85, lowPercent: 20, minimumAge: duration(0n) });
    const fake = aNode({ freesOnCommit: true, frees: () => 0n }, { limits });
    const pressure = new AbortController();
    // The wait for space begins with a commit.
    Object.assign(fake.engine, { commit: async () => pressure.abort() });
    const preempted = { kind: "image-gc", containers: "none", preempt: pressure.signal } as const;
    expect((await runFakePass(fake, preempted)).pass.images?.end).toBe("stopped");
    expect((await run(fake)).images.end).toBe("nothing-freed");
    expect(fake.writes).toHaveLength(5);
  });

  test("leaves the disk alone for a period once removals gave nothing back, which doubles", async () => {
    const fake = aNode(
      { frees: () => 0n },
      {
        limits: withLimits({ highPercent: 85, lowPercent: 20, minimumAge: duration(0n) }),
      },
    );
    const periodic = async () => {
      const before = fake.writes.length;
      await runFakePass(fake, { kind: "image-gc", containers: "none" });
      return fake.writes.length - before;
    };
    expect(await periodic()).toBe(5);
    expect(await periodic()).toBe(0);
    fake.elapse(Number(minutes(6) / 1_000_000n));
    expect(await periodic()).toBe(5);
    fake.elapse(Number(minutes(6) / 1_000_000n));
    expect(await periodic()).toBe(0);
    fake.elapse(Number(minutes(6) / 1_000_000n));
    expect(await periodic()).toBe(5);
  });

  test("keeps an image that a pod names since the pass began", async () => {
    const fake = aNode({ callMs: 2_000 });
    const images = ["registry.example/image01:v1"];
    fake.world.before = (method) => {
      if (method !== "RemoveImage") return;
      const specs = { pods: [{ uid: podUid("new"), images }], error: null };
      fake.world.pods = { ...fake.world.pods, specs };
    };
    expect(await run(fake)).toMatchObject({ images: { end: "target-reached" }, count: 5 });
    expect(fake.writes).not.toContain(`RemoveImage ${idOf("image01")}`);
  });

  test("tries what could not be removed last for a day", async () => {
    const fake = aNode({}, { fails: new Set([`RemoveImage ${idOf("image00")}`]) });
    await run(fake);
    expect(fake.writes[0]).toBe(`RemoveImage ${idOf("image00")}`);
    await runFakePass(fake, { purpose: { kind: "all-unused" }, containers: "none" });
    expect(fake.writes.at(-1)).toBe(`RemoveImage ${idOf("image00")}`);
  });

  test("removes a prefix of its plan, and nothing outside it", async () => {
    const fake = aNode();
    const { pass } = await runFakePass(fake, { containers: "none" });
    const planned = (pass.plan.images?.candidates ?? []).map(({ image }) => image.id);
    const removed = (pass.images?.items ?? []).map(({ candidate }) => candidate.image.id);
    expect(removed).toEqual(planned.slice(0, removed.length));
    const expected = (pass.plan.images?.candidates ?? []).filter((one) => one.expected);
    expect(expected).toHaveLength(removed.length);
  });
});

describe("on CRI-O", () => {
  const runtime = { ...aSnapshot().runtime, name: "cri-o" };

  test("no image is removed from a disk without room, which the plan says", async () => {
    const filesystem = aFilesystem({ availableBytes: 0n, freeBytes: 31n * MIB });
    const fake = aNode({}, { runtime, filesystem });
    const { pass } = await runFakePass(fake, { containers: "none" });
    expect(fake.writes).toEqual([]);
    expect(pass.plan.images?.blocks.map(({ kind }) => kind)).toContain("no-room");
  });

  test("a removal that fails for want of space ends the pass, although the image is gone", async () => {
    const fake = aNode({}, { runtime });
    fake.world.before = (method, id) => {
      if (method !== "RemoveImage") return;
      fake.world.images = fake.world.images.filter((one) => one.id !== id);
      throw new RuntimeError("failed", "write images.json: no space left on device");
    };
    const { images, count } = await run(fake);
    expect([images.end, count]).toEqual(["no-room", 1]);
    expect(images.items).toMatchObject([{ result: { kind: "failed" } }]);
  });
});

describe("a pod that is starting", () => {
  const born = (ago: bigint) => [{ uid: "u" as never, bornAt: (NOW - ago) as never, files: [] }];

  test("holds image removal up until it has waited for 150 s", async () => {
    const fake = aNode({}, { podDirectories: born(seconds(0)) });
    fake.world.before = (method) => {
      if (method === "RemoveImage") expect(fake.world.wall - NOW >= seconds(149)).toBe(true);
    };
    const { images } = await run(fake);
    expect(images.end).toBe("target-reached");
  });

  test("holds it up for no longer than until it has started", async () => {
    const fake = aNode({}, { podDirectories: born(seconds(0)) });
    fake.world.before = () => {
      if (fake.world.wall - NOW > seconds(3)) fake.world.podDirectories = [];
    };
    await run(fake);
    expect(fake.world.wall - NOW < seconds(10)).toBe(true);
  });

  test("holds up no pass that has reached its target", async () => {
    const fake = aNode();
    fake.world.before = (method) => {
      const isLast = method === "RemoveImage" && fake.writes.length === 5;
      if (isLast) fake.world.podDirectories = born(NOW - fake.world.wall);
    };
    expect((await run(fake)).images.end).toBe("target-reached");
    expect(fake.world.wall - NOW < seconds(1)).toBe(true);
  });

  test("holds a pass under pressure up for five seconds, and no second one", async () => {
    const fake = aNode({}, { podDirectories: born(seconds(0)) });
    const pressure = async () => {
      const before = fake.world.wall;
      const pressureTargets = [
        {
          kind: "available-bytes" as const,
          trigger: { kind: "pressure" as const, signal: "imagefs.available" as const },
          device: "8:1",
          path: "/var/lib/containerd",
          availableBytes: 90n * GIB,
          wantedBytes: 2n * GIB,
          relievedBytes: 12n * GIB,
        },
      ];
      const purpose = { kind: "pressure" as const, signals: ["imagefs.available" as const] };
      await runFakePass(fake, { kind: "pressure", containers: "none", purpose, pressureTargets });
      return Number((fake.world.wall - before) / 1_000_000_000n);
    };
    expect(await pressure()).toBeGreaterThanOrEqual(5);
    fake.engine.passes.waitedInVain();
    expect(await pressure()).toBeLessThan(5);
  });
});
