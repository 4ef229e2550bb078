import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { ImageTarget } from "../../src/model/plan.ts";
import type { DiskReading, Filesystem } from "../../src/model/snapshot.ts";
import { duration } from "../../src/model/time.ts";
import { breakdownOf } from "../../src/policy/disk.ts";
import {
  boundOf,
  budgetTargets,
  collectsImages,
  type DiskTarget,
  freeTargets,
  futilityOf,
  gaveNothing,
  isTelling,
  judgeDisks,
  lacksRoom,
  measuredStop,
  type Progress,
  type Removed,
  reserveLackOf,
  roomsOf,
  type Streak,
  streakAfter,
  type Verdict,
} from "../../src/policy/space.ts";
import { layersOf } from "../support/build/layers.ts";
import {
  aFilesystem,
  aSnapshot,
  defaultImageLimits,
  GIB,
  inodeTarget,
  MIB,
  spaceTarget,
} from "../support/build/values.ts";

const disk = (change: Partial<Filesystem>): Filesystem =>
  aFilesystem({ capacityBytes: 100n * GIB, ...change });
const limits = { ...defaultImageLimits, highPercent: 85, lowPercent: 80 };
const targetsOn = (change: Partial<Filesystem>) =>
  judgeDisks({ filesystems: [disk(change)] }, limits).targets;

describe("a disk target", () => {
  test.each([
    ["does not exist below the high threshold", 16n * GIB, null],
    ["is the low threshold once the high one is reached", 15n * GIB + (GIB - 1n), 20n * GIB],
    ["is the low threshold of a full disk", 0n, 20n * GIB],
  ])("%s", (_, availableBytes, expected) => {
    const [target] = targetsOn({ availableBytes });
    expect(target?.kind === "available-bytes" ? target.availableBytes : null).toBe(expected);
    if (expected !== null) expect(target).toMatchObject({ wantedBytes: expected - availableBytes });
  });

  test.each([
    ["a tenth used", { inodes: 1000n, inodesFree: 900n }, 10],
    ["none free", { inodes: 1000n, inodesFree: 0n }, 100],
    ["all free", { inodes: 1000n, inodesFree: 1000n }, 0],
    ["no inodes", { inodes: 0n, inodesFree: 0n }, null],
    ["fewer than none", { inodes: 1000n, inodesFree: -1n }, null],
    ["more free than it has", { inodes: 1000n, inodesFree: 1001n }, null],
  ])("ignores inodes, whose usage is reported: %s", (_, change, percent) => {
    const { usage } = judgeDisks({ filesystems: [disk(change)] }, limits);
    expect(usage.map((one) => one.inodesUsedPercent)).toEqual([percent]);
  });

  test("counts more available than the capacity as all of it", () => {
    const { usage, targets, blocks } = judgeDisks(
      { filesystems: [disk({ availableBytes: 101n * GIB })] },
      limits,
    );
    expect(usage).toMatchObject([{ usedPercent: 0 }]);
    expect([targets, blocks]).toEqual([[], []]);
  });

  test("of a request is the size minus what is available", () => {
    const filesystems = [disk({ availableBytes: 4n * GIB })];
    expect(freeTargets({ filesystems }, 10n * GIB)).toMatchObject([{ wantedBytes: 6n * GIB }]);
    expect(freeTargets({ filesystems }, 4n * GIB)).toEqual([]);
  });

  test("includes what root's reserve lacks", () => {
    const full = { availableBytes: 0n, freeBytes: GIB, reservedBytes: 5n * GIB };
    expect(reserveLackOf(disk(full))).toBe(4n * GIB);
    expect(targetsOn(full)).toMatchObject([{ availableBytes: 20n * GIB, wantedBytes: 24n * GIB }]);
    expect(freeTargets({ filesystems: [disk(full)] }, 10n * GIB)).toMatchObject([
      { availableBytes: 10n * GIB, wantedBytes: 14n * GIB },
    ]);
  });

  test.each([
    ["0 bytes", { capacityBytes: 0n }],
    ["less than nothing available", { availableBytes: -1n }],
  ])("does not exist on a disk of %s, which blocks removal", (_, change) => {
    const { targets, blocks } = judgeDisks({ filesystems: [disk(change)] }, limits);
    expect([targets, blocks.map(({ kind }) => kind)]).toEqual([[], ["invalid-capacity"]]);
  });
});

test("the target of a budget is what the images take beyond it", () => {
  const wanted = (size: bigint) => budgetTargets(() => size, { storeBudgetBytes: GIB });
  expect(wanted(GIB)).toEqual([]);
  expect(wanted(3n * GIB)).toMatchObject([{ maximumBytes: GIB, wantedBytes: 2n * GIB }]);
  expect(budgetTargets(() => 9n * GIB, { storeBudgetBytes: null })).toEqual([]);
});

test.each([
  [85, 0n, null, true],
  [100, 0n, null, false],
  [100, 1n, null, true],
  [100, 0n, 0n, true],
] as const)(
  "at a high threshold of %d, a maximum age of %p and a budget of %p, image GC runs: %p",
  (highPercent, age, storeBudgetBytes, runs) => {
    const change = { highPercent, maximumAge: duration(age), storeBudgetBytes };
    expect(collectsImages({ ...limits, ...change })).toBe(runs);
  },
);

describe("a disk is futile", () => {
  const containerd = { ...aSnapshot().runtime, name: "containerd" };
  const crio = { ...containerd, name: "cri-o" };
  const futile = (
    target: DiskTarget,
    change: Partial<Filesystem>,
    unusedBytes: bigint,
    runtime = containerd,
  ): boolean => {
    const filesystem = disk({ imageUsedBytes: null, ...change });
    const snapshot = aSnapshot({ runtime, filesystems: [filesystem] });
    const breakdown = breakdownOf(filesystem, { ...snapshot, layers: layersOf() });
    return futilityOf(target, filesystem, { snapshot, unusedBytes, breakdown }).futile;
  };
  const to = (bytes: bigint): DiskTarget => spaceTarget(bytes, 0n);
  const small = { availableBytes: 5n * GIB };

  test.each([
    [
      "not if five times the unused images reach its threshold",
      to(15n * GIB),
      small,
      2n * GIB,
      false,
    ],
    ["if they do not", to(15n * GIB), small, 2n * GIB - 1n, true],
    [
      "if the runtime's figure and their sizes do not",
      to(15n * GIB),
      { ...small, imageUsedBytes: 8n * GIB },
      2n * GIB - 1n,
      true,
    ],
    [
      "if five times their sizes do not, however large the store is",
      to(15n * GIB),
      { ...small, imageUsedBytes: 60n * GIB },
      GIB,
      true,
    ],
    [
      "if less is in use than it lacks",
      to(99n * GIB),
      { availableBytes: 98n * GIB },
      60n * GIB,
      false,
    ],
    [
      "if what they take only refills root's reserve",
      to(10n * GIB),
      { availableBytes: 0n, freeBytes: 0n, reservedBytes: 5n * GIB },
      2n * GIB,
      true,
    ],
  ] as const)("%s", (_, target, change, unused, expected) => {
    expect(futile(target, change, unused)).toBe(expected);
  });

  test("on CRI-O if it needs more than 1.25 times the sizes", () => {
    expect(futile(to(15n * GIB), small, 8n * GIB, crio)).toBe(false);
    expect(futile(to(15n * GIB), small, 8n * GIB - 1n, crio)).toBe(true);
    // Its own figure is of metadata alone.
    expect(futile(to(15n * GIB), { ...small, imageUsedBytes: GIB }, 8n * GIB, crio)).toBe(false);
  });

  test("for inodes by the runtime's own count, and where it gives none, or is CRI-O", () => {
    const counted = { inodes: 1000n, inodesFree: 10n, imageInodesUsed: 90n, imageUsedBytes: GIB };
    expect(futile(inodeTarget(100n, 90n), counted, 0n)).toBe(false);
    expect(futile(inodeTarget(101n, 91n), counted, 0n)).toBe(true);
    expect(futile(inodeTarget(11n, 1n), { ...counted, imageInodesUsed: null }, 0n)).toBe(true);
    expect(futile(inodeTarget(11n, 1n), counted, 0n, crio)).toBe(true);
  });

  test("by a bound that grows with the figure of the store, up to five times the sizes", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 40n), fc.bigInt(0n, 2n ** 40n), (usedBytes, unusedBytes) => {
        const bound = boundOf(containerd, usedBytes, unusedBytes);
        const more = boundOf(containerd, usedBytes + 1n, unusedBytes);
        expect(bound <= more && bound <= 5n * unusedBytes).toBe(true);
      }),
    );
  });
});

test.each([
  ["32 MiB and 64 inodes", false, { freeBytes: 32n * MIB, inodes: 100n, inodesFree: 64n }],
  ["less than 32 MiB", true, { freeBytes: 32n * MIB - 1n }],
  ["fewer than 64 inodes", true, { inodes: 100n, inodesFree: 63n }],
  ["32 MiB that only root may use", false, { availableBytes: 0n, freeBytes: 32n * MIB }],
  ["nothing of no limit", false, { capacityBytes: 0n, availableBytes: 0n }],
  ["no inodes of none", false, { inodes: 0n, inodesFree: 0n }],
])("with %s free a disk lacks room for CRI-O's records: %p", (_, expected, change) => {
  expect(lacksRoom(disk({ inodes: 0n, ...change }))).toBe(expected);
});

test.each([
  ["cri-o", ["imagefs", "containerfs"]],
  ["containerd", []],
])("%s needs room on the disks of images and containers", (name, expected) => {
  const filesystems = (["imagefs", "containerfs", "nodefs"] as const).map((role) =>
    disk({ roles: [role] }),
  );
  const rooms = roomsOf({ runtime: { ...aSnapshot().runtime, name }, filesystems });
  expect(rooms.flatMap(({ roles }) => roles)).toEqual(expected as never);
});

const verdictOf = (
  targets: readonly ImageTarget[],
  progress: Omit<Progress, "sizes" | "isEnd">,
): Verdict => measuredStop({ targets }).verdict({ sizes: [], isEnd: false, ...progress });

describe("a pass", () => {
  const target = spaceTarget(20n * GIB, 10n * GIB);
  const at = (availableBytes: bigint, estimatedBytes: bigint, storeBytes = 0n) => ({
    readings: new Map<string, DiskReading>([["8:1", disk({ availableBytes, inodesFree: 10n })]]),
    estimatedBytes,
    storeBytes,
  });
  const budget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: GIB,
    wantedBytes: GIB,
  } as const;

  test.each([
    ["goes on before its target is reached", [target], at(19n * GIB, 9n * GIB), "go-on"],
    ["has reached its target as measured", [target], at(20n * GIB, 0n), "reached"],
    ["waits once the estimates add up", [target], at(10n * GIB, 10n * GIB), "estimated"],
    [
      "goes on until every target is reached",
      [target, budget],
      at(20n * GIB, 0n, 2n * GIB),
      "go-on",
    ],
    [
      "goes on while the estimates reach one of two targets",
      [target, { ...target, wantedBytes: 30n * GIB }],
      at(10n * GIB, 10n * GIB),
      "go-on",
    ],
    [
      "goes on to the end if everything is asked for",
      [{ kind: "everything", trigger: { kind: "all-unused" } }],
      at(99n * GIB, 99n * GIB),
      "go-on",
    ],
    ["has reached its budget by the lists", [budget], at(0n, 0n, GIB), "reached"],
    ["counts no estimates for inodes", [inodeTarget(11n, 1n)], at(0n, 99n * GIB), "go-on"],
    ["has reached its inodes", [inodeTarget(10n, 1n)], at(0n, 0n), "reached"],
    ["without a target has nothing to reach", [], at(0n, 0n), "reached"],
  ] as const)("%s", (_, targets, progress, verdict) => {
    expect(verdictOf(targets, progress)).toBe(verdict);
  });

  test("never removes more if more is available", () => {
    const amount = fc.bigInt(0n, 40n * GIB);
    const order = { "go-on": 0, estimated: 1, reached: 2 };
    fc.assert(
      fc.property(amount, amount, amount, (available, more, estimated) => {
        const less = order[verdictOf([target], at(available, estimated))];
        expect(order[verdictOf([target], at(available + more, estimated))] >= less).toBe(true);
      }),
    );
  });
});

describe("removals in a row", () => {
  const removed = (gainedMib: number, estimatedMib = 100): Removed => ({
    sizeBytes: 100n * MIB,
    estimatedBytes: BigInt(estimatedMib) * MIB,
    gainedBytes: BigInt(gainedMib) * MIB,
    before: { freeBytes: 0n, ns: 0n },
  });
  const after = (...those: readonly Removed[]) =>
    those.reduce<Streak | null>((streak, one) => streakAfter(streak, one), null);
  const five = Array.from({ length: 5 }, () => removed(0));

  test.each([
    ["that gave nothing five times are telling", five, true],
    ["that gave nothing four times are not", five.slice(1), false],
    ["end with one that gave a tenth", [...five.slice(1), removed(10), removed(0)], false],
    ["do not end with one that gave less", [...five.slice(1), removed(9)], true],
    [
      "do not count small images",
      [...five.slice(1), { ...removed(0), sizeBytes: MIB - 1n }],
      false,
    ],
    ["count those of 1 MiB", five.map(() => ({ ...removed(0), sizeBytes: MIB })), true],
    ["do not count images whose layers all stay", [...five.slice(1), removed(0, 0)], false],
    [
      "count versions of one size, which are known to differ in a few bytes",
      five.map((one) => ({ ...one, estimatedBytes: 20n, gainedBytes: 16n * 1024n })),
      true,
    ],
    [
      "do not count versions that give back little because they differ in little",
      five.map((one) => ({ ...one, estimatedBytes: 20n, gainedBytes: 26n * 1024n })),
      false,
    ],
    ["count ones beside which others wrote more", five.map(() => removed(-300)), true],
  ])("%s", (_, those, expected) => {
    const mended = those.map((one) => ({ ...one }));
    expect(isTelling(after(...mended))).toBe(expected);
  });

  test.each([
    ["gave nothing if space did not change", 0n, 0n, true],
    ["gave back what came late", 50n, 0n, false],
    ["gave back what others wrote meanwhile, as fast as they do now", 0n, 50n, false],
    ["gave nothing if others wrote less than a tenth", 0n, 48n, true],
    ["gave nothing if others delete", 0n, -100n, true],
  ])("%s", (_, risenMib, writtenMib, expected) => {
    const before = { freeBytes: GIB, ns: 3_000_000_000n };
    const streak = after(...five.map((one) => ({ ...one, before })))!;
    // Twice as long as the look.
    const now = { freeBytes: GIB + risenMib * MIB, ns: 7_000_000_000n };
    const look = { freeBytes: now.freeBytes - (writtenMib * MIB) / 2n, ns: 9_000_000_000n };
    expect(gaveNothing(streak, now, look)).toBe(expected);
  });
});
