// What is remembered from one observation to the next: over restarts, reboots, gaps, and clocks that jump.

import { describe, expect, test } from "bun:test";

import { asIfOldEnough, detect, prepare, type PrepareRequest } from "../../src/gc/prepare.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { podUid } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import {
  type Duration,
  duration,
  hours,
  instant,
  minutes,
  seconds,
  totalUptime,
} from "../../src/model/time.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import { aPodRecord, noLogs } from "../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  defaultLimits,
  GIB,
  idOf,
  listedBefore,
  NOW,
  recordsOf,
  spaceTarget,
  withLimits,
} from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, type FakeWorld } from "../support/fake-engine.ts";

const never = new AbortController().signal;

/** A node with one image that is used and one that is not. */
function aNode(change: Partial<FakeWorld> = {}): FakeEngine {
  return fakeEngine({
    images: [anImage("used"), anImage("idle", { sizeBytes: 4n * GIB })],
    containers: [aContainer("c", { imageId: idOf("used") })],
    ...change,
  });
}

const pass = (fake: FakeEngine, span: Duration): void => {
  fake.world.uptime += span;
  fake.world.wall = instant(fake.world.wall + span);
};

async function prepared(
  { engine }: Pick<FakeEngine, "engine">,
  change: Partial<PrepareRequest> = {},
  signal = never,
) {
  return prepare(
    engine,
    {
      purpose: { kind: "all-unused" },
      parts: { containers: "none", images: true },
      pressureTargets: [],
      paused: new Map(),
      remembers: true,
      ...change,
    },
    signal,
  );
}

const candidates = async (fake: FakeEngine): Promise<readonly string[]> => {
  const { plan } = await prepared(fake);
  return (plan.images?.candidates ?? []).map(({ image }) => image.repoTags[0] ?? image.id);
};

/** What the ledger knows of an image that may be removed. */
const anOldImage = { ledger: aLedger({ images: recordsOf(["idle"]) }) };

const ageOf = (ledger: Ledger, word: string): Duration =>
  duration(ledger.totalUptime - (ledger.images.get(idOf(word))?.firstSeenUptime ?? 0n));

describe("the ledger", () => {
  test("counts an image that comes while a slow runtime lists as first seen when it came", async () => {
    const fake = aNode();
    await detect(fake.engine, never);
    fake.world.before = (method) => {
      if (method !== "ListImages") return;
      pass(fake, minutes(1));
      fake.world.images.push(anImage("late"));
    };
    await detect(fake.engine, never);
    const { ledger, wall } = fake.world;
    expect(ledger.images.get(idOf("late"))?.firstSeenAt).toBe(wall);
    expect(ageOf(ledger, "late")).toBe(duration(0n));
    expect(ageOf(ledger, "idle")).toBe(minutes(1));
  });

  test("is not changed by a plan that is only shown", async () => {
    const fake = aNode({ uptime: hours(49) });
    const before = fake.world.ledger;
    const { ledger } = await prepared(fake, { remembers: false });
    expect(ledger.images.size).toBe(2);
    expect(fake.world.ledger).toBe(before);
  });

  test("is unchanged if a list fails, but for images that the list before it lacks", async () => {
    const ledger = aLedger({ images: recordsOf(["used", "idle"]) });
    const fake = aNode({ ledger, fails: new Set(["ListContainers"]) });
    const thrown = await detect(fake.engine, never).catch((error: unknown) => error);
    expect(String(thrown)).toContain("ListContainers was made to fail");
    expect(fake.world.ledger).toBe(ledger);
    fake.world.images = [anImage("used")];
    await detect(fake.engine, never).catch(() => null);
    expect([...fake.world.ledger.images.keys()]).toEqual([idOf("used")]);
  });

  test("has a record of each pod after a pass that judges them, and no other one", async () => {
    const pods = new Map([[podUid("uid-b"), aPodRecord({ absentSinceUptime: totalUptime(0n) })]]);
    const world = { ledger: aLedger({ pods }), sandboxes: [aSandbox("a")], logs: noLogs };
    const fake = aNode(world);
    await detect(fake.engine, never);
    await prepared(fake);
    expect(fake.world.ledger.pods).toBe(pods);
    await prepared(fake, { parts: { containers: "all", images: true } });
    expect([...fake.world.ledger.pods.keys()]).toContain(aSandbox("a").podUid);
  });

  test("does not lose what another process recorded meanwhile", async () => {
    const fake = aNode();
    fake.world.before = (method) => {
      if (method !== "ImageFsInfo") return;
      const images = recordsOf(["idle"], { lastUsedAt: NOW });
      fake.engine.memory.replace({ ...fake.engine.memory.current(), images });
    };
    await detect(fake.engine, never);
    expect(fake.world.ledger.images.get(idOf("idle"))?.lastUsedAt).toEqual(NOW);
  });
});

describe("the layers of images", () => {
  const withFree = (availableBytes: bigint) => ({ filesystem: aFilesystem({ availableBytes }) });
  const isFull = withFree(GIB);
  const kubelet = { policy: kubeletPolicy(null), limits: withLimits({ minimumAge: minutes(0) }) };
  const periodic = { purpose: { kind: "periodic" } } as const;
  const named = { purpose: { kind: "all-unused", isByName: true } } as const;
  const underPressure = {
    purpose: { kind: "pressure", signals: ["imagefs.available"] },
    pressureTargets: [spaceTarget(20n * GIB, 19n * GIB)],
  } as const;

  test.each([
    ["are read before a pass for space", isFull, periodic, true],
    ["are not read before a pass under pressure", isFull, underPressure, false],
    [
      "are not read before the removal of one named image, which has no order",
      isFull,
      named,
      false,
    ],
    ["are read before a removal of all unused images", isFull, {}, true],
    [
      "are not read under the kubelet's rules",
      { ...isFull, ...kubelet },
      { ...periodic, allLayers: true },
      false,
    ],
    ["are read for a shown removal of all unused images", isFull, { remembers: false }, true],
    ["are read for a plan that shows them all", isFull, { allLayers: true }, true],
    ["are not read before a pass that removes nothing", withFree(90n * GIB), periodic, false],
  ])("%s", async (_, change, request, isRead) => {
    const fake = aNode({ ...anOldImage, ...change });
    const { plan, ledger } = await prepared(fake, request);
    expect(plan.images?.candidates).toHaveLength(
      "filesystem" in change && change.filesystem === isFull.filesystem ? 1 : 0,
    );
    expect(ledger.imageConfigs.size > 0).toBe(isRead);
    expect(fake.calls.includes("ImageStatus")).toBe(isRead);
  });

  test("are read before a removal, so that of images of equal age the one built first goes first", async () => {
    const words = ["a", "b"];
    const ledger = aLedger({ images: recordsOf(words) });
    const images = words.map((word) => anImage(word));
    const { engine } = aNode({ images, ledger });
    const firstOf = async (old: string) => {
      const imageConfig = async (id: string) => ({
        chain: null,
        builtAt: id === idOf(old) ? instant(1n) : NOW,
      });
      const runtime = { ...engine.observe.runtime, imageConfig };
      const node = { engine: { ...engine, observe: { ...engine.observe, runtime } } };
      engine.memory.replace(ledger);
      return (await prepared(node)).plan.images?.candidates[0]?.image.id;
    };
    expect([await firstOf("a"), await firstOf("b")]).toEqual([idOf("a"), idOf("b")]);
  });

  test("are read once for each image", async () => {
    const fake = aNode({ ...anOldImage, ...isFull });
    const reads = async () => {
      fake.calls.length = 0;
      await prepared(fake, periodic);
      return fake.calls.filter((method) => method === "ImageStatus").length;
    };
    expect(await reads()).toBe(fake.world.images.length);
    expect(await reads()).toBe(0);
    fake.world.images = [...fake.world.images, anImage("new")];
    expect(await reads()).toBe(1);
  });

  test("that the runtime cannot tell of one image are read for the others all the same", async () => {
    const fake = aNode({ ...anOldImage, ...isFull });
    fake.world.before = (method, id) => {
      if (method === "ImageStatus" && id === idOf("used"))
        throw new RuntimeError("failed", "the image is broken");
    };
    await prepared(fake, periodic);
    expect([...fake.world.ledger.imageConfigs.keys()]).toEqual([idOf("idle")]);
  });

  test("that hang stop a pass that is stopped", async () => {
    const interrupted = async () => {
      const stop = new AbortController();
      const fake = aNode({ ...anOldImage, ...isFull });
      fake.world.before = (method) => {
        if (method !== "ImageStatus") return;
        stop.abort();
        throw new RuntimeError("cancelled", "the call was cancelled");
      };
      const { plan } = await prepared(fake, periodic, stop.signal);
      return plan.images?.candidates.length;
    };
    const thrown = await interrupted().catch((error: unknown) => error);
    expect(String(thrown)).toContain("the call was cancelled");
  });
});

test("references that the runtime does not resolve in time hold up an observation for one deadline", async () => {
  const containers = Array.from({ length: 100 }, (_, at) =>
    aContainer(`c${at}`, { imageName: `r.example/lost:${at}`, imageId: "", imageRef: "" }),
  );
  const fake = aNode({ containers });
  fake.world.before = (method) => {
    if (method === "ImageStatus") throw new RuntimeError("deadline", "no answer in time");
  };
  const { snapshot } = await prepared(fake);
  expect(fake.calls.filter((method) => method === "ImageStatus").length).toBeLessThanOrEqual(17);
  const kinds = [...snapshot.resolutions.values()].map(({ kind }) => kind);
  expect(kinds).toEqual(Array(100).fill("unknown"));
});

test("log directories are read by passes that judge containers, not by detection", async () => {
  const logs = { kind: "failed", message: "unmounted" } as const;
  const fake = aNode({ logs });
  let reads = 0;
  const { host } = fake.engine.observe;
  const counted = { ...host, logs: async () => (reads++, logs) };
  const engine = { ...fake.engine, observe: { ...fake.engine.observe, host: counted } };
  await detect(engine, never);
  expect(reads).toBe(0);
  await prepared({ engine }, { parts: { containers: "all", images: true } });
  expect(reads).toBe(1);
});

test("detection reports keep patterns that match no image", async () => {
  const rules = ["registry.example/gone", "registry.example/idle"].map((pattern) => ({
    pattern,
    source: "/k/a.list:1",
  }));
  const fake = aNode({ keep: { rules, problems: [] } });
  expect((await detect(fake.engine, never)).unmatchedKeepRules).toEqual(["registry.example/gone"]);
});

describe("the grace period", () => {
  const old = { ...anOldImage.ledger, containers: listedBefore };

  const blocks = async (fake: FakeEngine): Promise<readonly string[]> =>
    ((await prepared(fake)).plan.images?.blocks ?? []).map((block) => block.kind);

  test("begins when all containers vanish between two observations", async () => {
    const fake = aNode({
      ledger: old,
      lies: (method) => (method === "ListContainers" ? "empty" : null),
    });
    expect(await blocks(fake)).toEqual(["boot-grace"]);
    fake.world.lies = () => null;
    // The list is right again; the grace runs to its end all the same.
    expect(await blocks(fake)).toEqual(["boot-grace"]);
    expect(await candidates(fake)).toEqual([]);
    pass(fake, minutes(5));
    expect(await candidates(fake)).toEqual(["registry.example/idle:v1"]);
  });
});

test("a plan of old enough images has every unused one, and ends no grace period", async () => {
  const node = async (ledger: Partial<Ledger>, uptime: bigint = hours(48)) => {
    const fake = aNode({ uptime, ledger: { ...emptyLedger, ...ledger } });
    const seen = await prepared(fake);
    return { seen, old: asIfOldEnough(fake.engine, seen).plan.images };
  };
  const fresh = await node({});
  expect(fresh.seen.plan.images?.candidates).toEqual([]);
  expect(fresh.old?.candidates.map(({ image }) => image.id)).toEqual([idOf("idle")]);
  const booted = await node({ ...anOldImage.ledger, bootId: "boot-0" }, minutes(1));
  expect(booted.old?.blocks.map(({ kind }) => kind)).toEqual(["boot-grace"]);
});

describe("under the kubelet's rules, whose process counts time as it passes,", () => {
  const ledger = { ...defaultLimits.ledger, bootGrace: minutes(0) };
  const limits = { ...withLimits({ maximumAge: hours(100) }), ledger };
  const YEAR: bigint = hours(24 * 365);

  /** An agent that has seen a used and an idle image, and after which the clock is set and some time passes. */
  async function afterClockSet(by: bigint, span: Duration): Promise<FakeEngine> {
    const fake = aNode({
      limits,
      filesystem: aFilesystem({ availableBytes: 0n }),
      policy: kubeletPolicy(hours(48)),
    });
    await detect(fake.engine, never);
    fake.world.containers = [];
    fake.world.wall = instant(fake.world.wall + by);
    pass(fake, span);
    return fake;
  }
  const going = async (fake: FakeEngine): Promise<readonly string[]> => {
    const { plan } = await prepared(fake, { purpose: { kind: "periodic" } });
    return (plan.images?.candidates ?? []).map(({ image }) => image.repoTags[0] ?? image.id);
  };

  test.each([YEAR, -YEAR])("a clock set by %p ns makes no image older or younger", async (by) => {
    expect(await going(await afterClockSet(by, seconds(119)))).toEqual([]);
    expect(await going(await afterClockSet(by, minutes(2)))).toEqual([
      "registry.example/idle:v1",
      "registry.example/used:v1",
    ]);
  });

  test("a container pass sees no images", async () => {
    const fake = await afterClockSet(0n, seconds(30));
    fake.world.images.push(anImage("late"));
    fake.world.images.shift();
    const parts = { containers: "all", images: false } as const;
    await prepared(fake, { purpose: { kind: "periodic" }, parts });
    pass(fake, minutes(4));
    expect(await going(fake)).toEqual(["registry.example/idle:v1"]);
  });
});
