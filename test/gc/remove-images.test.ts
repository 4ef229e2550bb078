// The measured walk: it ends where the disk says so, credits only what was seen, and never trusts an answer alone.
import { describe, expect, test } from "bun:test";

import type { FreshNode } from "../../src/gc/fresh-view.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { type ImageExecution, removeImages } from "../../src/gc/remove-images.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { HoldState } from "../../src/model/pass.ts";
import type { ImageTarget } from "../../src/model/plan.ts";
import type { ImageBlock } from "../../src/model/reason.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import { duration, seconds, watched } from "../../src/model/time.ts";
import type { Facts } from "../../src/policy/facts.ts";
import { imageKeep } from "../../src/report/image-reasons.ts";
import {
  aCandidate,
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  anImagePlan,
  aRecord,
  aSnapshot,
  defaultImageLimits,
  defaultLimits,
  factsOf,
  MIB,
  NOW,
  spaceTarget,
  withImageLimits,
} from "../support/build/values.ts";

interface World {
  available: bigint;
  listed: Map<ImageId, Image>;
  clockMs: number;
  removals: string[];
  /** Space that comes later: at this time, so much. */
  pending: { atMs: number; bytes: bigint }[];
}

interface Behaviour {
  /** What a removal really frees, by name. */
  readonly frees?: (name: string) => bigint;
  readonly lateMs?: number;
  readonly fails?: readonly string[];
  /** What those that fail fail with. */
  readonly failure?: RuntimeError;
  readonly ghosts?: readonly string[];
  /** Bytes that another program writes before each removal. */
  readonly writes?: bigint;
  readonly beforeLook?: (world: World) => void;
  /** What the node lists beside the images, or in place of them. */
  readonly node?: () => Partial<Snapshot>;
  readonly execution?: Partial<ImageExecution>;
}

const STORE = aFilesystem({ path: "/var/lib/containerd", imageUsedBytes: null });
const listsOf = (node: Partial<Snapshot>): FreshNode => ({
  snapshot: aSnapshot(node),
  missed: new Set(),
  block: null,
});

const defaults = { ...defaultImageLimits, minimumAge: duration(0n) };

const nameOf = (image: Image): string => /\/(.+):/.exec(image.repoTags[0] ?? "")?.[1] ?? "";

function worldOf(names: readonly string[], available: bigint, behaviour: Behaviour = {}) {
  const candidates = names.map((name) => aCandidate(name));
  const world: World = {
    available,
    listed: new Map(candidates.map((one) => [one.image.id, one.image])),
    clockMs: 0,
    removals: [],
    pending: [],
  };
  const settlePending = (): void => {
    for (const due of world.pending.filter((one) => one.atMs <= world.clockMs))
      world.available += due.bytes;
    world.pending = world.pending.filter((one) => one.atMs > world.clockMs);
  };
  const removeImage = async (id: ImageId): Promise<void> => {
    const image = world.listed.get(id);
    const name = image === undefined ? "" : nameOf(image);
    world.removals.push(name);
    if (behaviour.fails?.includes(name))
      throw behaviour.failure ?? new RuntimeError("failed", "device is busy");
    if (behaviour.ghosts?.includes(name)) return;
    world.listed.delete(id);
    const bytes = (behaviour.frees ?? (() => 100n * MIB))(name);
    if (behaviour.lateMs === undefined) world.available += bytes;
    else world.pending.push({ atMs: world.clockMs + behaviour.lateMs, bytes });
  };
  const images = (): readonly Image[] => [...world.listed.values()];
  const ledger = aLedger();
  const execution = (
    target: bigint,
    facts: Partial<Facts> = {},
    change: Partial<ImageExecution> = {},
  ): ImageExecution => ({
    plan: anImagePlan(candidates, { targets: [spaceTarget(target, target - available)] }),
    facts: {
      ...factsOf(aSnapshot({ images: images(), filesystems: [STORE] }), ledger, {
        ...defaults,
        whenFutile: "collect",
      }),
      ...facts,
    },
    runtime: { imageStatus: async (id) => images().find((image) => image.id === id) ?? null },
    memory: volatileMemory(ledger),
    hold: () => ({ kind: "none" }),

    steps: { wait: (_, wait) => wait() },
    writer: { removeImage },
    commit: async () => undefined,
    disk: {
      measure: async () => {
        settlePending();
        return {
          capacityBytes: 10_000n * MIB,
          availableBytes: world.available,
          inodes: 0n,
          inodesFree: 0n,
        };
      },
    },
    timer: {
      monotonicNs: () => BigInt(world.clockMs) * 1_000_000n,
      sleep: async (ms) => {
        world.clockMs += ms;
      },
    },
    now: () => NOW,
    look: async () => {
      world.available -= behaviour.writes ?? 0n;
      behaviour.beforeLook?.(world);
      return listsOf({ images: images(), ...behaviour.node?.() });
    },
    done: () => undefined,
    signal: new AbortController().signal,
    ...behaviour.execution,
    ...change,
  });
  return { world, execution };
}

const imageCount = (maximumImages: number): ImageTarget => ({
  kind: "image-count",
  trigger: { kind: "count" },
  maximumImages,
  wantedImages: 1,
});

const run = async (execution: ImageExecution) => (await removeImages(execution)).outcome;

describe("a measured pass", () => {
  test("stops as soon as the target is reached, and not one image later", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB);
    const outcome = await run(execution(1_150n * MIB));
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b"]);
    expect(outcome.measuredFreedBytes).toBe(200n * MIB);
  });

  test("continues if images free far less than reported", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB, {
      frees: () => 60n * MIB,
    });
    expect((await run(execution(1_150n * MIB))).end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b", "c"]);
  });

  test("stops early if an image frees far more than reported", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB, { frees: () => 400n * MIB });
    expect((await run(execution(1_350n * MIB))).end).toBe("target-reached");
    expect(world.removals).toEqual(["a"]);
  });

  test("ends when its own removals freed the initial target, while another program writes", async () => {
    const names = Array.from({ length: 30 }, (_, index) => `i${index}`);
    const { world, execution } = worldOf(names, 1_000n * MIB, { writes: 20n * MIB });
    const outcome = await run(execution(1_400n * MIB));
    expect(outcome.end).toBe("own-gain-reached");
    expect(world.removals).toHaveLength(4);
    expect(outcome.measuredFreedBytes).toBe(400n * MIB);
  });

  test("does not credit an image that is still listed, and removes the next one instead", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { ghosts: ["a"] });
    const outcome = await run(execution(1_100n * MIB));
    expect(outcome.items.map((item) => item.result.kind)).toEqual(["ghost", "removed"]);
    expect(outcome.ghosts.map(nameOf)).toEqual(["a"]);
    expect(outcome.reportedFreedBytes).toBe(100n * MIB);
    expect(world.removals).toEqual(["a", "b"]);
  });

  test("does not credit space that appears after a ghost to the image before it", async () => {
    const { world, execution } = worldOf(["a", "ghost", "c"], 1_000n * MIB, {
      ghosts: ["ghost"],
      beforeLook: (now) => {
        if (now.removals.at(-1) === "ghost") now.available += 40n * MIB;
      },
    });
    const outcome = await run(execution(1_230n * MIB));
    expect(world.removals).toEqual(["a", "ghost", "c"]);
    expect(outcome.measuredFreedBytes).toBe(200n * MIB);
  });

  test("records a failed removal and continues with the next one", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { fails: ["a"] });
    const outcome = await run(execution(1_100n * MIB));
    expect(outcome.items[0]?.result).toEqual({
      kind: "failed",
      message: "device is busy",
      code: "failed",
    });
    expect(world.removals).toEqual(["a", "b"]);
  });

  describe.each([
    ["the pass frees space all the same", "none", ["old", "b"], "target-reached"],
    ["the kubelet frees no space in that pass", "kubelet", ["old"], "age-removal-errors"],
  ] as const)("after a failed removal for age", (claim, compat, removals, end) => {
    test(claim, async () => {
      const { world, execution } = worldOf(["old", "b"], 1_000n * MIB, { fails: ["old"] });
      const base = execution(1_050n * MIB);
      const candidates = base.plan.candidates.map((one, index) =>
        index === 0 ? { ...one, triggers: [{ kind: "age" } as const, ...one.triggers] } : one,
      );
      const outcome = await run({
        ...base,
        plan: { ...base.plan, candidates },
        facts: withImageLimits(base.facts, { compat }),
      });
      expect(world.removals).toEqual([...removals]);
      expect(outcome.end).toBe(end);
    });
  });

  test("starts no removal if it was stopped while measuring the disk", async () => {
    const { world, execution } = worldOf(["a"], 1_000n * MIB);
    const stop = new AbortController();
    const base = execution(1_150n * MIB);
    let measurements = 0;
    const disk = {
      measure: (path: string) => {
        measurements += 1;
        if (measurements > 1) stop.abort();
        return base.disk.measure(path);
      },
    };
    const { outcome } = await removeImages({ ...base, disk, signal: stop.signal });
    expect(outcome.end).toBe("stopped");
    expect(world.removals).toEqual([]);
  });

  test("ends when a list fails, because the images in use are unknown", async () => {
    const look = async () => {
      throw new RuntimeError("unreachable", "the runtime went away");
    };
    const { world, execution } = worldOf(["a"], 1_000n * MIB);
    const outcome = await run(execution(1_100n * MIB, {}, { look }));
    expect(outcome).toMatchObject({
      end: "observation-failed",
      error: "the runtime went away",
      items: [],
    });
    expect(world.removals).toEqual([]);
  });

  test("is stopped, not failed, if a stop cancels a list", async () => {
    const stop = new AbortController();
    const look = async () => {
      stop.abort();
      throw new RuntimeError("cancelled", "the call was cancelled");
    };
    const { execution } = worldOf(["a"], 1_000n * MIB);
    const { outcome } = await removeImages(
      execution(1_100n * MIB, {}, { look, signal: stop.signal }),
    );
    expect(outcome).toMatchObject({ end: "stopped", error: null, items: [] });
  });

  test("records a removal whose outcome cannot be read, and ends", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB);
    const imageStatus = async () => {
      throw new RuntimeError("unreachable", "the runtime went away");
    };
    const outcome = await run(execution(1_900n * MIB, {}, { runtime: { imageStatus } }));
    expect(outcome).toMatchObject({ end: "observation-failed", error: "the runtime went away" });
    expect(outcome.items.map((item) => item.result)).toMatchObject([
      { kind: "removed", measuredBytes: 0n, settled: "not-seen" },
    ]);
    expect(world.removals).toEqual(["a"]);
  });

  test("records a removal whose outcome is not waited for because of a stop, and is stopped", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB);
    const stop = new AbortController();
    const imageStatus = async () => {
      stop.abort();
      throw new RuntimeError("cancelled", "the call was cancelled");
    };
    const given = execution(1_900n * MIB, {}, { runtime: { imageStatus } });
    const { outcome } = await removeImages({ ...given, signal: stop.signal });
    expect(outcome).toMatchObject({ end: "stopped", error: null });
    expect(outcome.items).toMatchObject([{ result: { kind: "removed", settled: "not-seen" } }]);
    expect(world.removals).toEqual(["a"]);
  });

  test.each([
    ["answered with success has no record: one that comes back is new", [], false],
    ["refused keeps its record: it is likely to be there still", ["a"], true],
  ] as const)(
    "handles a removal whose outcome cannot be read and that was %s",
    async (_, fails, isKnown) => {
      const { world, execution } = worldOf(["a"], 1_000n * MIB, { fails });
      const { id } = anImage("a");
      const ledger = aLedger({ images: new Map([[id, aRecord()]]) });
      const memory = volatileMemory(ledger);
      const imageStatus = async () => {
        throw new RuntimeError("unreachable", "the runtime went away");
      };
      await run(execution(1_900n * MIB, { ledger }, { memory, runtime: { imageStatus } }));
      expect(world.removals).toEqual(["a"]);
      expect(memory.current().images.has(id)).toBe(isKnown);
    },
  );

  test.each([
    ["is gone", null],
    ["is of one that came back", aRecord({ firstSeenWatched: watched(1n) })],
    [
      "has new names, so that its minimum age began anew",
      aRecord({ ageRestartedWatched: watched(1n) }),
    ],
  ] as const)(
    "keeps an image whose record, by another process or loop, %s since the plan",
    async (_, now) => {
      const { world, execution } = worldOf(["a"], 1_000n * MIB);
      const { id } = anImage("a");
      const ledger = aLedger({ images: new Map([[id, aRecord()]]) });
      const images = new Map(now === null ? [] : [[id, now] as const]);
      const memory = volatileMemory(aLedger({ images }));
      const outcome = await run(execution(1_900n * MIB, { ledger }, { memory }));
      expect(outcome.items).toMatchObject([
        { result: { kind: "skipped", reason: { kind: "changed" } } },
      ]);
      expect(world.removals).toEqual([]);
    },
  );

  test("removes nothing on lists that became too old while the disk was measured", async () => {
    const { world, execution } = worldOf(["a"], 1_000n * MIB);
    let measured = 0;
    const measure = async () => {
      measured += 1;
      if (measured > 1) world.clockMs += 250;
      return {
        capacityBytes: 10_000n * MIB,
        availableBytes: world.available,
        inodes: 0n,
        inodesFree: 0n,
      };
    };
    const outcome = await run(execution(1_900n * MIB, {}, { disk: { measure } }));
    expect(outcome.end).toBe("observation-failed");
    expect(outcome.error).toContain("3 attempts took too long");
    expect(world.removals).toEqual([]);
  });

  test("lists the node again after a measurement that hangs once, and continues", async () => {
    const { world, execution } = worldOf(["a"], 1_000n * MIB);
    const base = execution(1_100n * MIB);
    let measured = 0;
    let looks = 0;
    const measure = async (path: string) => {
      measured += 1;
      if (measured === 2) world.clockMs += 300;
      return base.disk.measure(path);
    };
    const look = async () => {
      looks += 1;
      return base.look();
    };
    const outcome = await run({ ...base, disk: { measure }, look });
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a"]);
    expect(looks).toBe(2);
  });

  test("skips what became protected after the plan, and never passes it to RemoveImage", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB, {
      node: () => ({ images: [anImage("a", { pinned: true }), anImage("b")] }),
    });
    const outcome = await run(execution(1_100n * MIB));
    expect(outcome.items[0]?.result).toEqual({ kind: "skipped", reason: { kind: "pinned" } });
    expect(world.removals).toEqual(["b"]);
  });

  test("ends as futile as soon as the remaining candidates cannot help", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { frees: () => 10n * MIB });
    // By the bound an image frees five times its 100 MiB: the last one alone no longer does.
    const outcome = await run(
      execution(1_900n * MIB, {
        limits: { ...defaultLimits, images: defaults },
      }),
    );
    expect(outcome.end).toBe("futile");
    expect(world.removals).toEqual(["a", "b"]);
  });

  test("removes nothing while the disk has enough space", async () => {
    const { world, execution } = worldOf(["a"], 1_200n * MIB);
    expect((await run(execution(1_100n * MIB))).end).toBe("target-reached");
    expect(world.removals).toEqual([]);
  });

  test("ends at the removal limit, and when stopped after the removal in flight", async () => {
    const limited = worldOf(["a", "b", "c"], 1_000n * MIB);
    const limits = { ...defaultLimits, images: { ...defaults, maximumRemovals: 1 } };
    expect((await run(limited.execution(1_900n * MIB, { limits }))).end).toBe("removal-limit");
    expect(limited.world.removals).toEqual(["a"]);
    const stopped = worldOf(["a", "b", "c"], 1_000n * MIB);
    const abort = new AbortController();
    const execution = stopped.execution(1_900n * MIB, {}, { done: () => abort.abort() });
    const { outcome } = await removeImages({ ...execution, signal: abort.signal });
    expect(outcome.end).toBe("stopped");
    expect(stopped.world.removals).toEqual(["a"]);
  });

  test("pauses between removals, refused ones too, and not before the first", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { fails: ["b"] });
    const removalInterval = seconds(7);
    const limits = { ...defaultLimits, images: { ...defaults, removalInterval } };
    await run(execution(1_900n * MIB, { limits }));
    expect(world.removals).toEqual(["a", "b", "c"]);
    expect(world.clockMs).toBe(14_000);
  });

  test("does not use up the removal limit with refused removals, so that no image starves behind one", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { fails: ["a"] });
    const limits = { ...defaultLimits, images: { ...defaults, maximumRemovals: 1 } };
    expect((await run(execution(1_900n * MIB, { limits }))).end).toBe("removal-limit");
    expect(world.removals).toEqual(["a", "b"]);
  });

  test("counts removals that time out towards the limit, because they may be under way", async () => {
    const failure = new RuntimeError("deadline", "no answer");
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB, { fails: ["a"], failure });
    const limits = { ...defaultLimits, images: { ...defaults, maximumRemovals: 1 } };
    expect((await run(execution(1_900n * MIB, { limits }))).end).toBe("removal-limit");
    expect(world.removals).toEqual(["a"]);
  });
});

describe("reported accounting", () => {
  const limits = {
    ...defaultLimits,
    images: { ...defaults, accounting: "reported" as const, compat: "kubelet" as const },
  };

  test("sums reported sizes, whatever the disk shows", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, { frees: () => 0n });
    const outcome = await run(execution(1_150n * MIB, { limits }));
    expect(outcome).toMatchObject({
      end: "target-reached",
      reportedFreedBytes: 200n * MIB,
      measuredFreedBytes: 0n,
      items: [{ result: { settled: "not-waited" } }, { result: { settled: "not-waited" } }],
    });
    expect(world.removals).toEqual(["a", "b"]);
    expect(world.clockMs).toBe(0);
  });

  test("removes one eligible image even with a target of zero, as the kubelet does", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB);
    await run(execution(1_000n * MIB, { limits }));
    expect(world.removals).toEqual(["a"]);
  });
});

/** The first candidate goes for its age, whatever the disk says. */
const agedFirst = (execution: ImageExecution): ImageExecution => ({
  ...execution,
  plan: {
    ...execution.plan,
    candidates: execution.plan.candidates.map((one, index) =>
      index === 0 ? { ...one, triggers: [{ kind: "age" }] } : one,
    ),
  },
});

describe("an image removed for its age before others are removed for space", () => {
  test("counts once towards the target", async () => {
    const { world, execution } = worldOf(["old", "b", "c", "d"], 1_000n * MIB);
    const outcome = await run(agedFirst(execution(1_250n * MIB)));
    expect(outcome).toMatchObject({
      end: "target-reached",
      wantedBytes: 250n * MIB,
      reportedFreedBytes: 300n * MIB,
    });
    expect(world.removals).toEqual(["old", "b", "c"]);
  });

  test("does not count towards the targets with reported accounting", async () => {
    const { world, execution } = worldOf(["old", "b", "c", "d", "e"], 1_000n * MIB, {
      frees: () => 0n,
    });
    const base = agedFirst(execution(1_250n * MIB));
    const facts = withImageLimits(base.facts, { accounting: "reported", compat: "kubelet" });
    const outcome = await run({ ...base, facts });
    expect(outcome).toMatchObject({ end: "target-reached", reportedFreedBytes: 300n * MIB });
    expect(world.removals).toEqual(["old", "b", "c", "d"]);
  });

  test("is removed although the disk has enough space, and no other is", async () => {
    const { world, execution } = worldOf(["old", "b"], 1_000n * MIB);
    expect((await run(agedFirst(execution(900n * MIB)))).end).toBe("target-reached");
    expect(world.removals).toEqual(["old"]);
  });

  test.each([
    ["target-reached", ["old"]],
    ["nothing-to-do", ["b"]],
  ] as const)("alone makes the pass end as %s with candidates %j", async (end, names) => {
    const { world, execution } = worldOf(names, 1_000n * MIB);
    const given = execution(1_000n * MIB);
    const base = names[0] === "old" ? agedFirst(given) : given;
    expect((await run({ ...base, plan: { ...base.plan, targets: [] } })).end).toBe(end);
    expect(world.removals).toEqual(names[0] === "old" ? ["old"] : []);
  });

  test.each([["fails"], ["ghosts"]] as const)(
    "alone does not make the pass reach its target if its removal has no effect (%s)",
    async (how) => {
      const { world, execution } = worldOf(["old"], 1_000n * MIB, { [how]: ["old"] });
      const base = agedFirst(execution(1_000n * MIB));
      const outcome = await run({ ...base, plan: { ...base.plan, targets: [] } });
      expect(outcome.end).toBe("candidates-exhausted");
      expect(world.removals).toEqual(["old"]);
    },
  );

  test.each([
    ["nothing-to-do", []],
    ["observation-failed", [spaceTarget(1_100n * MIB, 100n * MIB)]],
  ] as const)("a pass without candidates that cannot measure ends as %s", async (end, targets) => {
    const { execution } = worldOf([], 1_000n * MIB);
    const measure = async (): Promise<never> => {
      throw new RuntimeError("failed", "statfs failed");
    };
    const given = execution(1_000n * MIB, {}, { disk: { measure } });
    expect((await run({ ...given, plan: { ...given.plan, targets } })).end).toBe(end);
  });

  test("is the only one removed if the figures of the disk are invalid, and the end says so", async () => {
    const { world, execution } = worldOf(["old", "b"], 1_000n * MIB);
    const base = agedFirst(execution(1_900n * MIB));
    const blocks = [
      { kind: "on-hold", until: null, reason: "" },
      { kind: "invalid-capacity", path: STORE.path, message: "no capacity" },
    ] as const;
    const outcome = await run({ ...base, plan: { ...base.plan, blocks } });
    expect(outcome.end).toBe("invalid-capacity");
    expect(world.removals).toEqual(["old"]);
  });

  test("is the last one if a hold begins then, even if it is released a moment later", async () => {
    const { world, execution } = worldOf(["old", "b"], 1_000n * MIB);
    let asked = 0;
    const hold = (): HoldState =>
      (asked += 1) === 1
        ? { kind: "held", until: null, since: null, reason: "" }
        : { kind: "none" };
    const outcome = await run(agedFirst(execution(1_050n * MIB, {}, { hold })));
    expect(outcome.end).toBe("blocked");
    expect(world.removals).toEqual([]);
  });

  test("makes the pass measure the disk again with reported accounting", async () => {
    const { world, execution } = worldOf(["old", "b"], 1_000n * MIB);
    const base = agedFirst(execution(1_100n * MIB));
    const facts = withImageLimits(base.facts, { accounting: "reported", compat: "kubelet" });
    expect((await run({ ...base, facts })).end).toBe("target-reached");
    expect(world.removals).toEqual(["old"]);
  });
});

test.each([
  ["futile", ["futile"]],
  ["blocked", ["futile", "on-hold"]],
] as const)("a pass without removable images ends as %s if %j", async (end, kinds) => {
  const { world, execution } = worldOf([], 1_000n * MIB);
  const given = execution(1_900n * MIB);
  const blocks = kinds.map((kind): ImageBlock =>
    kind === "futile"
      ? { kind, filesystem: STORE.path, boundBytes: 0n, neededBytes: 900n * MIB }
      : { kind, until: null, reason: "" },
  );
  expect((await run({ ...given, plan: { ...given.plan, blocks } })).end).toBe(end);
  expect(world.removals).toEqual([]);
});

describe("a pass under pressure that waits between two removals", () => {
  /** After the first removal, the lists take `ms` while another program writes 300 MiB. */
  async function passWaiting(ms: number, targetsNow: (available: bigint) => ImageTarget[]) {
    const { world, execution } = worldOf(["a", "b", "c", "d", "e", "f"], 1_000n * MIB, {
      beforeLook: (now) => {
        if (now.removals.length !== 1) return;
        now.clockMs += ms;
        now.available -= 300n * MIB;
      },
    });
    const retarget = async () => targetsNow(world.available);
    const outcome = await run(execution(1_200n * MIB, {}, { retarget }));
    return { outcome, removals: world.removals.join("") };
  }
  const further = (available: bigint) => [spaceTarget(1_200n * MIB, 1_200n * MIB - available)];

  test("for a second takes the target of the disk as it is then", async () => {
    const { outcome, removals } = await passWaiting(1_000, further);
    expect(removals).toBe("abcde");
    expect(outcome).toMatchObject({ end: "target-reached", wantedBytes: 500n * MIB });
  });

  test("for less keeps its target", async () => {
    const { outcome, removals } = await passWaiting(999, further);
    expect(removals).toBe("ab");
    expect(outcome).toMatchObject({ end: "own-gain-reached", wantedBytes: 200n * MIB });
  });

  test("for a second ends if the pressure is over by then", async () => {
    const { outcome, removals } = await passWaiting(1_000, () => []);
    expect(removals).toBe("a");
    expect(outcome).toMatchObject({ end: "target-reached", wantedBytes: 200n * MIB });
  });
});

describe("an image that others are built on", () => {
  /** The second candidate has no layer that the first one lacks. */
  const followed = (execution: ImageExecution): ImageExecution => {
    const [first, second] = execution.plan.candidates;
    if (first === undefined || second === undefined) throw new Error("two candidates are needed");
    const candidates = [first, { ...second, follows: [first.image.id] }];
    return { ...execution, plan: { ...execution.plan, candidates } };
  };

  test("is kept if the image that has all of its layers could not be removed", async () => {
    const { world, execution } = worldOf(["child", "base"], 1_000n * MIB, { fails: ["child"] });
    const outcome = await run(followed(execution(1_900n * MIB)));
    expect(world.removals).toEqual(["child"]);
    expect(outcome.items[1]?.result).toMatchObject({
      kind: "skipped",
      reason: { kind: "shares-all-layers" },
    });
  });

  test("is removed after the image that has all of its layers, although the list is from before", async () => {
    const { world, execution } = worldOf(["child", "base"], 1_000n * MIB, {
      node: () => ({ images: [anImage("child"), anImage("base")] }),
    });
    await run(followed(execution(1_900n * MIB)));
    expect(world.removals).toEqual(["child", "base"]);
  });
});

describe("while other programs change the images", () => {
  test("an image missing from one list of the pass counts as new and is kept", async () => {
    const { world, execution } = worldOf(["a", "b"], 1_000n * MIB);
    const base = execution(1_100n * MIB);
    const look = async () => ({
      ...(await base.look()),
      missed: new Set([anImage("a").id]),
    });
    const outcome = await run({ ...base, look });
    expect(world.removals).toEqual(["b"]);
    expect(outcome.items[0]?.result).toMatchObject({ kind: "skipped" });
  });

  test("images removed by others count towards the number of images", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, {
      beforeLook: (it) => {
        if (it.removals.length === 1) it.listed.delete(anImage("b").id);
      },
    });
    const given = execution(1_000n * MIB);
    const outcome = await run({ ...given, plan: { ...given.plan, targets: [imageCount(1)] } });
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a"]);
  });

  test("those of a list that serves again count as they are after the removals since", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB);
    const given = execution(1_000n * MIB);
    const lists = await given.look();
    const plan = { ...given.plan, targets: [imageCount(2)] };
    expect((await run({ ...given, plan, look: async () => lists })).end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b"]);
  });
});

describe("removals that time out", () => {
  const deadline = new RuntimeError("deadline", "RemoveImage was not answered within 2m");

  test("do not keep the next image from being removed", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, {
      fails: ["a"],
      failure: deadline,
    });
    const outcome = await run(execution(1_100n * MIB));
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b"]);
  });

  test("end the pass after two in a row, because the runtime may still be working on them", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB, {
      fails: ["a", "b", "c", "d"],
      failure: deadline,
    });
    const outcome = await run(execution(1_100n * MIB));
    expect(outcome).toMatchObject({ end: "observation-failed" });
    expect(outcome.error).toContain("timed out");
    expect(world.removals).toEqual(["a", "b"]);
  });

  test("differ from refused ones, after which every image is tried", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB, {
      fails: ["a", "b", "c"],
    });
    expect((await run(execution(1_100n * MIB))).end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b", "c", "d"]);
  });
});

describe("what a pass credits itself with", () => {
  test("does not include a file that another program deletes between two removals", async () => {
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, {
      beforeLook: (it) => {
        if (it.removals.length === 1) it.available += 9_000n * MIB;
      },
    });
    const outcome = await run(execution(1_300n * MIB));
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a"]);
    // An image takes at most five times what is reported of it.
    expect(outcome.measuredFreedBytes).toBeLessThanOrEqual(500n * MIB);
  });

  test("includes space that appears before the next removal", async () => {
    let came = false;
    const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, {
      frees: () => 40n * MIB,
      beforeLook: (it) => {
        if (it.removals.length === 1 && !came) it.available += 60n * MIB;
        came = it.removals.length === 1;
      },
    });
    const outcome = await run(execution(1_140n * MIB, {}));
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b"]);
    expect(outcome.measuredFreedBytes).toBe(140n * MIB);
    expect(outcome.items[1]?.result).toMatchObject({ measuredBytes: 40n * MIB });
  });

  test("is measured on the image filesystem in a pass for the number of images", async () => {
    const { execution } = worldOf(["a", "b", "c"], 1_000n * MIB);
    const given = execution(1_000n * MIB);
    const outcome = await run({ ...given, plan: { ...given.plan, targets: [imageCount(1)] } });
    expect(outcome).toMatchObject({
      end: "target-reached",
      measuredFreedBytes: 200n * MIB,
      availableBefore: 1_000n * MIB,
      availableAfter: 1_200n * MIB,
    });
  });

  test("is compared with its largest target", async () => {
    const { execution } = worldOf(["a", "b", "c"], 1_000n * MIB);
    const given = execution(1_000n * MIB);
    const targets = [100n, 200n, 100n].map((bytes) =>
      spaceTarget((1_000n + bytes) * MIB, bytes * MIB),
    );
    const outcome = await run({ ...given, plan: { ...given.plan, targets } });
    expect(outcome).toMatchObject({ wantedBytes: 200n * MIB, measuredFreedBytes: 200n * MIB });
  });
});

describe("images on several filesystems", () => {
  test("are removed down to the target if each frees space on the full one", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const { world, execution } = worldOf(names, 1_000n * MIB);
    const snapshot = aSnapshot({ filesystems: [STORE, { ...STORE, device: "8:2" }] });
    const outcome = await run(execution(1_500n * MIB, { snapshot }));
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(names);
  });

  describe("short of inodes", () => {
    const several = aSnapshot({ filesystems: [STORE, { ...STORE, device: "8:2" }] });

    /** Each removal frees so many inodes, and somebody else takes as many. */
    async function forInodes(names: readonly string[], freed: bigint, taken = 0n) {
      const { world, execution } = worldOf(names, 1_000n * MIB, { frees: () => 0n });
      let looks = 0n;
      const given = execution(1_000n * MIB, { snapshot: several });
      const disk = {
        measure: async (path: string) => ({
          ...(await given.disk.measure(path)),
          inodesFree: 1_000n + BigInt(world.removals.length) * freed - looks * taken,
        }),
      };
      const look = async () => {
        if (world.removals.length > 0) looks += 1n;
        return given.look();
      };
      const target: ImageTarget = {
        kind: "free-inodes",
        trigger: { kind: "space" },
        device: STORE.device,
        path: STORE.path,
        inodesFree: 1_400n,
        wantedInodes: 400n,
        relievedInodes: 1_400n,
      };
      const plan = { ...given.plan, targets: [target] };
      return { outcome: await run({ ...given, plan, disk, look }), world };
    }

    test("ten images that free none end the pass", async () => {
      const { outcome, world } = await forInodes("abcdefghijklm".split(""), 0n);
      expect(outcome.end).toBe("nothing-freed");
      expect(world.removals).toHaveLength(10);
    });

    test("images that free inodes but no bytes are removed down to the target", async () => {
      const { outcome, world } = await forInodes(["a", "b", "c", "d", "e"], 100n);
      expect(outcome.end).toBe("target-reached");
      expect(world.removals).toHaveLength(4);
    });

    test("the pass ends with its own gain while another program takes as many", async () => {
      const { outcome, world } = await forInodes(["a", "b", "c", "d", "e"], 100n, 100n);
      expect(outcome.end).toBe("own-gain-reached");
      expect(world.removals).toHaveLength(4);
    });
  });

  test("that free nothing because others have their layers do not end the pass", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d", "e"], 1_000n * MIB, {
      frees: (name) => (name === "d" ? 900n * MIB : 0n),
    });
    const snapshot = aSnapshot({ filesystems: [STORE, { ...STORE, device: "8:2" }] });
    const given = execution(1_900n * MIB, { snapshot });
    const frees = { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 4_096n };
    const candidates = given.plan.candidates.map((one, index) =>
      index < 3 ? { ...one, frees } : one,
    );
    const outcome = await run({ ...given, plan: { ...given.plan, candidates } });
    expect(outcome.end).toBe("target-reached");
    expect(world.removals).toEqual(["a", "b", "c", "d"]);
  });

  test("may share layers on a single filesystem, so the pass continues", async () => {
    const { world, execution } = worldOf(["a", "b", "c", "d", "e"], 1_000n * MIB, {
      frees: (name) => (name === "e" ? 900n * MIB : 0n),
    });
    const other = aFilesystem({ device: "8:2", roles: ["nodefs"] });
    const snapshot = aSnapshot({ filesystems: [STORE, other] });
    expect((await run(execution(1_900n * MIB, { snapshot }))).end).toBe("target-reached");
    expect(world.removals).toHaveLength(5);
  });
});

test("an image that is listed twice counts once towards the number of images", async () => {
  const { world, execution } = worldOf(["a", "b", "c", "d"], 1_000n * MIB, {
    node: () => ({
      images: ["a", "b", "c", "d"].flatMap((name) => [anImage(name), anImage(name)]),
    }),
  });
  const given = execution(1_000n * MIB);
  const outcome = await run({ ...given, plan: { ...given.plan, targets: [imageCount(3)] } });
  expect(outcome.end).toBe("target-reached");
  expect(world.removals).toEqual(["a"]);
});

test("a hold that begins during a pass ends it before the next removal", async () => {
  const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB);
  let asked = 0;
  const hold = (): HoldState =>
    (asked += 1) === 2 ? { kind: "held", until: null, since: null, reason: "" } : { kind: "none" };
  const outcome = await run(execution(1_900n * MIB, {}, { hold }));
  expect(outcome.end).toBe("blocked");
  expect(world.removals).toEqual(["a"]);
  expect(outcome.items).toHaveLength(2);
});

test("an unknown use during a pass ends it, and the report names container and reference", async () => {
  let looks = 0;
  const stranger = aContainer("web", { imageName: "registry.example/unknown:1", imageRef: "" });
  const { world, execution } = worldOf(["a", "b", "c"], 1_000n * MIB, {
    node: () => ((looks += 1) === 2 ? { containers: [stranger] } : {}),
  });
  const outcome = await run(execution(1_900n * MIB));
  expect(outcome.end).toBe("blocked");
  expect(world.removals).toEqual(["a"]);
  const result = outcome.items[1]?.result;
  const reason = result?.kind === "skipped" ? imageKeep.text(result.reason) : "";
  expect(reason).toContain("registry.example/unknown:1");
  expect(reason).toContain("web");
});
