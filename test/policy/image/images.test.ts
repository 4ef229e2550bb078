import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageTarget } from "../../../src/model/plan.ts";
import type { Filesystem, Image, Snapshot } from "../../../src/model/snapshot.ts";
import { hours, minutes, totalUptime } from "../../../src/model/time.ts";
import type { Facts } from "../../../src/policy/facts.ts";
import { rememberImageConfigs } from "../../../src/policy/layers.ts";
import {
  aContainer,
  aFilesystem,
  anImage,
  GIB,
  inodeTarget,
  MIB,
  NOW,
  spaceTarget,
} from "../../support/build/values.ts";
import { fateOf, planOf, WATCHED, words } from "../judging.ts";

const HELD = { kind: "held", until: null, since: null, reason: "" } as const;
const gib = (name: string, size = 1n) => anImage(name, { sizeBytes: size * GIB });
const three = [gib("a"), gib("b"), gib("c")];
/** 100 GiB, of which so many are available. */
const disk = (availableGib: bigint, imageUsedGib: bigint | null = 60n) =>
  aFilesystem({
    availableBytes: availableGib * GIB,
    imageUsedBytes: imageUsedGib === null ? null : imageUsedGib * GIB,
  });
const onDisk = (availableGib: bigint): Partial<Snapshot> => ({ filesystems: [disk(availableGib)] });
/** What crigc knows of the images' layers, first to last. */
const imageConfigsOf = (images: readonly Image[], chains: readonly (readonly string[])[]) =>
  rememberImageConfigs(
    { imageConfigs: new Map(), layers: new Map() },
    images.map(({ id }) => id),
    new Map(
      images.map(({ id }, at) => [id, { chain: (chains[at] ?? []).map(chainId), builtAt: null }]),
    ),
  );

describe("space", () => {
  test("below the high threshold every image is kept because no trigger is met", () => {
    const plan = planOf({ images: three, snapshot: onDisk(16n) });
    expect(plan).toMatchObject({ triggers: [], targets: [], candidates: [], blocks: [] });
    expect(three.map((image) => fateOf(plan, image))).toEqual(Array(3).fill("no-trigger"));
    expect(plan.usage[0]).toMatchObject({ usedPercent: 84, highPercent: 85, lowPercent: 80 });
  });

  test("below the high threshold images are judged only once the kept ones are read, and only once", () => {
    let judged = 0;
    const image = {
      ...anImage("a"),
      // The rule after the uses reads it.
      get pinned() {
        judged += 1;
        return false;
      },
    };
    const plan = planOf({ images: [image], snapshot: onDisk(16n) });
    expect(plan.candidates).toEqual([]);
    expect(judged).toBe(0);
    expect(plan.kept).toHaveLength(1);
    expect(plan.kept).toBe(plan.kept);
    expect(judged).toBe(1);
  });

  test("each image filesystem is judged", () => {
    const filesystems = [
      disk(50n),
      aFilesystem({ device: "8:2", path: "/b", availableBytes: 10n * GIB }),
    ];
    expect(planOf({ images: three, snapshot: { filesystems } }).targets).toMatchObject([
      { device: "8:2" },
    ]);
  });
});

test("a high threshold of 100 turns it off unless a maximum age is set", () => {
  const met = (limits: Partial<ImageLimits>) =>
    planOf({ images: three, snapshot: onDisk(0n), limits: { highPercent: 100, ...limits } })
      .triggers;
  expect(met({})).toEqual([]);
  expect(met({ maximumAge: hours(9_000) })).toEqual([{ kind: "space" }]);
});

describe("other triggers", () => {
  test("several at once: each is named, and the strictest decides how far", () => {
    const plan = planOf({
      images: three,
      limits: { storeBudgetBytes: GIB },
      snapshot: onDisk(15n),
    });
    expect(plan.triggers).toEqual([{ kind: "space" }, { kind: "budget" }]);
    expect(
      plan.candidates.every(({ expected, triggers }) => expected && triggers.length === 2),
    ).toBeTrue();
  });
});

describe("a request for available space", () => {
  test.each([
    ["sets a target below the thresholds", 51n, [{ availableBytes: 51n * GIB }]],
    ["sets none that is already available", 50n, []],
  ] as const)("%s", (_, gibibytes, expected) => {
    const purpose = { kind: "periodic", freeBytes: gibibytes * GIB } as const;
    const plan = planOf({ images: three, snapshot: onDisk(50n), facts: { purpose } });
    expect(plan.targets).toMatchObject([...expected]);
    expect(plan.triggers).toEqual(expected.map(() => ({ kind: "free" })));
  });
});

test("the evaluated rules are listed, the deciding one last, and none that is off", () => {
  const always = ["in-use", "pinned", "sandbox-image", "keep-rule"] as const;
  const images = [{ ...gib("pinned"), pinned: true }, gib("free")];
  const kept = planOf({ images, snapshot: onDisk(50n) }).kept.map((one) => one.tried);
  const idle = [...always, "too-young", "no-trigger"] as const;
  expect(new Set(kept)).toEqual(new Set<(typeof kept)[number]>([["in-use", "pinned"], idle]));
  const { candidates } = planOf({ images, limits: { storeBudgetBytes: 0n } });
  expect(candidates[0]?.tried).toEqual([...always, "too-young"]);
});

describe("age", () => {
  const limits = { maximumAge: hours(24) };
  const usedBefore = (span: bigint) => ({
    lastUsedAt: NOW,
    lastUsedUptime: totalUptime(WATCHED - span),
  });

  test("images over the maximum age are removed at any disk usage; protected and younger ones are kept", () => {
    const plan = planOf({
      images: [gib("old"), gib("edge"), anImage("pinned", { pinned: true })],
      records: [usedBefore(hours(24) + 1n), usedBefore(hours(24)), usedBefore(hours(99))],
      limits,
      snapshot: onDisk(50n),
    });
    expect(words(plan.candidates)).toEqual(["old"]);
    expect(plan).toMatchObject({ triggers: [{ kind: "age" }], targets: [] });
    expect(plan.candidates[0]).toMatchObject({
      triggers: [{ kind: "age" }],
      expected: true,
      unusedFor: hours(24) + 1n,
    });
    expect(fateOf(plan, gib("edge"))).toBe("no-trigger");
  });

  test.each([
    ["nothing", "goes"],
    ["a hold", "blocked"],
    ["a capacity of 0", "blocked"],
  ] as const)("an image over the maximum age is judged beside %s: %s", (stops, fate) => {
    const filesystems = [
      stops === "a capacity of 0" ? aFilesystem({ capacityBytes: 0n }) : disk(50n),
    ];
    const plan = planOf({
      images: [gib("old")],
      limits,
      snapshot: { filesystems },
      facts: { hold: stops === "a hold" ? HELD : { kind: "none" } },
    });
    expect(fateOf(plan, gib("old"))).toBe(fate);
  });

  test.each([
    ["periodic", [{ kind: "space-off" }]],
    ["all-unused", []],
  ] as const)("a %s plan with nothing to watch says so where it matters", (kind, notes) => {
    const off = { highPercent: 100, lowPercent: 80 };
    const plan = planOf({ images: three, limits: off, facts: { purpose: { kind } } });
    expect(plan.notes).toEqual([...notes]);
  });
});

describe("pressure", () => {
  const trigger = { kind: "pressure", signal: "imagefs.available" } as const;
  const target = { ...spaceTarget(15n * GIB, GIB), trigger };
  const elsewhere: ImageTarget = { ...target, device: "8:2", path: "/other" };
  const pressed = (
    pressureTargets: readonly ImageTarget[],
    filesystems: readonly Filesystem[] = [disk(14n)],
  ) =>
    planOf({
      images: three,
      snapshot: { filesystems },
      limits: { storeBudgetBytes: 0n },
      facts: {
        purpose: { kind: "pressure", signals: ["imagefs.available"] },
        pressureTargets,
      },
    });

  test("removes images as far as its targets need, names each of its signals, and ignores the other thresholds", () => {
    const other = { kind: "pressure", signal: "nodefs.available" } as const;
    const targets = [target, { ...target, trigger: other }];
    const plan = pressed(targets);
    expect(plan).toMatchObject({ targets, triggers: [trigger, other] });
    expect(plan.candidates.map(({ expected }) => expected)).toEqual([true, false, false]);
    expect(plan.candidates[0]?.triggers).toEqual([trigger, other]);
  });

  test("removes no image for a disk that no longer exists", () => {
    expect(pressed([elsewhere])).toMatchObject({ candidates: [], targets: [], triggers: [] });
  });

  test("reports the largest need of a disk with several unreachable thresholds, in bytes and in inodes", () => {
    const inodes = (relieved: bigint) => ({ ...inodeTarget(relieved, 1n), trigger });
    const stricter: ImageTarget = { ...target, relievedBytes: 40n * GIB };
    const full = { ...disk(1n, 1n), inodesFree: 10n, imageInodesUsed: 1n };
    const targets = [stricter, inodes(600n), target, inodes(700n)];
    for (const those of [targets, targets.toReversed()]) {
      const { blocks } = pressed(those, [full]);
      expect(blocks).toHaveLength(2);
      expect(blocks).toContainEqual(
        expect.objectContaining({ kind: "futile", neededBytes: 39n * GIB }),
      );
      expect(blocks).toContainEqual(
        expect.objectContaining({ inodes: expect.objectContaining({ needed: 690n }) }),
      );
    }
  });

  test("removes no image for a reachable threshold if a stricter one on the same disk is unreachable", () => {
    const milder: ImageTarget = { ...target, availableBytes: 3n * GIB, relievedBytes: 3n * GIB };
    const full = disk(1n, 1n);
    const other = { ...disk(0n, 1n), device: "8:2", path: "/other" };
    expect(pressed([milder, target], [full])).toMatchObject({
      candidates: [],
      targets: [],
      blocks: [{ kind: "futile" }],
    });
    expect(pressed([milder], [full]).targets).toEqual([milder]);
    // Another disk has a pressure of its own.
    expect(pressed([milder, elsewhere], [full, other]).targets).toEqual([milder]);
  });
});

describe("a base goes directly after the last image built on it", () => {
  const image = (name: string, mib: bigint) => anImage(name, { sizeBytes: mib * MIB });
  const chains: Readonly<Record<string, readonly string[]>> = {
    base: ["b"],
    middle: ["b", "b/m"],
    top: ["b", "b/m", "b/m/t"],
    side: ["b", "b/s"],
    lone: ["l"],
  };
  test.each([
    [["base", "middle", "top"], "top middle base"],
    [["base", "top", "lone"], "top base lone"],
    [["base", "top", "lone", "side"], "top lone side base"],
    [["lone", "base"], "lone base"],
    [["middle", "base", "top"], "top middle base"],
  ])("where %j were unused for longest in this order", (names, expected) => {
    const images = names.map((name) => image(name, 10n));
    const imageConfigs = imageConfigsOf(
      images,
      names.map((name) => chains[name] ?? []),
    );
    const records = names.map((_, at) => ({ firstSeenUptime: totalUptime(BigInt(at)) }));
    const plan = planOf({
      images,
      records,
      ledger: imageConfigs,
      limits: { storeBudgetBytes: 0n },
    });
    expect(words(plan.candidates).join(" ")).toBe(expected);
  });
});

describe("beside a disk out of reach", () => {
  const [own, second] = [
    disk(10n),
    aFilesystem({ device: "8:2", path: "/b", availableBytes: 10n * GIB }),
  ];
  const paused = new Map([["8:2", minutes(7)]]);

  test("another one is relieved, and the plan notes the first", () => {
    const plan = planOf({
      images: three,
      snapshot: { filesystems: [own, second] },
      facts: { paused },
    });
    expect(plan).toMatchObject({
      blocks: [],
      targets: [{ device: "8:1" }],
      notes: [{ kind: "out-of-reach", block: { kind: "nothing-freed" } }],
    });
    expect(plan.candidates).toHaveLength(3);
  });

  test("a budget or a maximum age removes images unless every disk is paused", () => {
    const limits = { storeBudgetBytes: GIB, maximumAge: hours(1) };
    const going = (facts: Partial<Facts>) =>
      planOf({
        images: three,
        limits,
        snapshot: { filesystems: [{ ...own, availableBytes: 50n * GIB }, second] },
        facts,
      }).candidates.length;
    expect(going({ paused })).toBe(3);
    expect(going({ paused: new Map([...paused, ["8:1", minutes(7)]]) })).toBe(0);
  });

  test("a paused disk without a trigger blocks nothing", () => {
    const idle = { images: three, snapshot: onDisk(50n) };
    expect(planOf({ ...idle, facts: { paused: new Map([["8:1", minutes(7)]]) } }).blocks).toEqual(
      [],
    );
  });

  test("images are removed for an eviction threshold within reach, though the high threshold is not", () => {
    const trigger = { kind: "pressure", signal: "imagefs.available" } as const;
    const milder = { ...spaceTarget(4n * GIB, GIB), trigger };
    const plan = planOf({
      images: three,
      snapshot: { filesystems: [disk(3n, 4n)] },
      facts: { pressureTargets: [milder] },
    });
    expect(plan.targets).toEqual([milder]);
  });
});

test.each([
  ["all-unused", "all-unused"],
  ["pressure", "pressure"],
] as const)("the maximum age is no trigger of a pass of the kind %s", (kind, expected) => {
  const trigger = { kind: "pressure", signal: "imagefs.available" } as const;
  const plan = planOf({
    images: three,
    limits: { maximumAge: hours(1) },
    facts: {
      purpose: kind === "pressure" ? { kind, signals: [trigger.signal] } : { kind },
      pressureTargets: [{ ...spaceTarget(15n * GIB, GIB), trigger }],
    },
  });
  expect(plan.triggers.map((one) => one.kind)).toEqual([expected]);
});

test("images in use do not count towards what can be freed", () => {
  const used = gib("used", 50n);
  const plan = planOf({
    images: [...three, used],
    snapshot: { ...onDisk(0n), containers: [aContainer("c", { imageId: used.id })] },
  });
  expect(plan.blocks).toMatchObject([{ kind: "futile", boundBytes: 15n * GIB }]);
});

describe("futility", () => {
  const filled = { filesystems: [disk(3n, 4n)] };

  test("no image is removed for a disk on which removals gave nothing back, until its pause is over", () => {
    const node = {
      images: three,
      snapshot: { filesystems: [aFilesystem({ availableBytes: GIB })] },
    };
    const paused = new Map([["8:1", minutes(7)]]);
    const plan = planOf({ ...node, facts: { paused } });
    expect(plan.candidates).toEqual([]);
    expect(plan.blocks).toMatchObject([{ kind: "nothing-freed", remaining: minutes(7) }]);
    expect(planOf(node).candidates).toHaveLength(3);
  });

  test("is not judged by the layers that images share, since their own may be nearly all of them", () => {
    const images = Array.from({ length: 20 }, (_, at) => gib(`version${at}`));
    const ledger = imageConfigsOf(
      images,
      images.map((_, at) => ["base", `base/${at}`]),
    );
    const plan = planOf({ images, ledger, snapshot: { filesystems: [disk(3n)] } });
    expect(plan.futility).toMatchObject([{ futile: false, boundBytes: 80n * GIB }]);
    // Each layer is there once more in the store at most.
    const small = planOf({ images, ledger, snapshot: { filesystems: [disk(3n, 6n)] } });
    expect(small.futility).toMatchObject([{ futile: true, boundBytes: 12n * GIB }]);
  });

  test("no image is removed from a disk filled by other data, and the plan reports what fills it", () => {
    const plan = planOf({ images: three, snapshot: filled });
    expect(plan.candidates).toEqual([]);
    expect(plan.blocks).toMatchObject([
      {
        kind: "futile",
        filesystem: "/var/lib/containerd",
        boundBytes: 7n * GIB,
        neededBytes: 13n * GIB,
      },
    ]);
    expect(plan.kept.map(({ reason }) => reason)).toEqual(
      three.map(() => ({ kind: "blocked", block: "futile" })),
    );
    expect(plan.futility[0]).toMatchObject({ futile: true, breakdown: { otherBytes: 90n * GIB } });
    // The hold comes first, but a threshold is still exceeded.
    const held = planOf({ images: three, snapshot: filled, facts: { hold: HELD } });
    expect(held.blocks.map(({ kind }) => kind)).toEqual(["on-hold", "futile"]);
    expect(held.kept.map(({ reason }) => reason)).toEqual(
      three.map(() => ({ kind: "blocked", block: "on-hold" })),
    );
  });
});

test.each([
  ["a capacity of 0", { capacityBytes: 0n, availableBytes: 0n }, "/var/lib/containerd"],
  ["less than nothing available", { availableBytes: -1n }, "/var/lib/containerd"],
  ["no role of images", { roles: ["nodefs"] }, ""],
] as const)(
  "a filesystem whose figures cannot be judged and has %s stops every image, for every purpose",
  (_, change, path) => {
    for (const kind of ["periodic", "all-unused"] as const) {
      const plan = planOf({
        images: three,
        snapshot: { filesystems: [aFilesystem(change)] },
        facts: { purpose: { kind } },
      });
      expect(plan).toMatchObject({ candidates: [], blocks: [{ kind: "invalid-capacity", path }] });
      expect(fateOf(plan, gib("a"))).toBe("blocked");
    }
  },
);
