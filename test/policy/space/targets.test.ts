import { describe, expect, test } from "bun:test";

import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageTarget } from "../../../src/model/plan.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { minutes } from "../../../src/model/time.ts";
import type { LayerForest } from "../../../src/policy/layer/layers.ts";
import { imageUseOf, storeFilesystem } from "../../../src/policy/space/disk.ts";
import {
  collectsImages,
  judgeDisks,
  lackedBytes,
  metAfterAll,
  type Progress,
  storeTargets,
  targetsMet,
} from "../../../src/policy/space/targets.ts";
import {
  aFilesystem,
  anImage,
  aSnapshot,
  defaultImageLimits,
  GIB,
  inodeTarget,
  MIB,
  spaceTarget,
} from "../../support/build/values.ts";

const judged = (limits: Partial<ImageLimits>, change: Partial<Filesystem> = {}) =>
  judgeDisks({ filesystems: [aFilesystem(change)] }, { ...defaultImageLimits, ...limits });

describe("figures that contradict each other", () => {
  const fault = (capacityBytes: bigint, availableBytes: bigint, compat: "none" | "kubelet") =>
    judged({ compat }, { capacityBytes, availableBytes }).blocks.map((block) =>
      block.kind === "invalid-capacity" ? block.message : "",
    )[0] ?? null;

  test.each([
    [0n, 5n, "none", "the image filesystem at /var/lib/containerd reports a capacity of 0 bytes"],
    [1000n, -1n, "none", "reports less than 0 bytes available"],
    [1000n, 0n, "none", null],
    [1_000_000n, 1_004_096n, "none", null],
    [1_000_000n, 1_004_097n, "none", "reports more available than its capacity, of 1000000 bytes"],
    [1_000_000n, 9_000_000n, "kubelet", null],
    [1000n * GIB, 1001n * GIB, "none", null],
    [1000n * GIB, 1002n * GIB, "none", "reports more available than its capacity"],
  ] as const)("of %p, %p available with compat %s: %p", (capacity, available, compat, message) => {
    const found = fault(capacity, available, compat);
    if (message === null) expect(found).toBeNull();
    else expect(found).toContain(message);
  });

  test("a filesystem with slightly more available than its capacity counts as empty, with a note", () => {
    const at = (availableBytes: bigint) =>
      judged({}, { capacityBytes: 1_000_000n, availableBytes });
    expect(at(1_000_001n)).toMatchObject({
      usage: [{ usedPercent: 0 }],
      notes: [{ kind: "clamped", path: "/var/lib/containerd" }],
    });
    expect(at(1_000_000n).notes).toEqual([]);
  });

  test.each([
    [0n, 0n, null],
    [5n, 6n, null],
    [5n, -1n, null],
    [5n, 0n, 100],
    [5n, 5n, 0],
  ])(
    "a filesystem with %p inodes, %p of them free, uses %p percent",
    (inodes, inodesFree, used) => {
      expect(judged({}, { inodes, inodesFree }).usage).toMatchObject([{ inodesUsedPercent: used }]);
    },
  );
});

test.each([
  ["nothing", { highPercent: 100 }, false],
  ["a percentage", { highPercent: 99 }, true],
  ["a maximum age", { highPercent: 100, maximumAge: minutes(1) }, true],
  ["a budget", { highPercent: 100, storeBudgetBytes: 1n }, true],
] as const)("the image GC loop knows whether it has work if %s is set", (_, limits, has) => {
  expect(collectsImages({ ...defaultImageLimits, ...limits })).toBe(has);
});

describe("a budget", () => {
  const limited = (
    limits: Partial<ImageLimits>,
    imageUsedBytes: bigint | null,
    forest: LayerForest | null = null,
  ) => {
    const images = ["one", "two", "other"].map((word) => anImage(word, { sizeBytes: 100n }));
    const snapshot = aSnapshot({ images, filesystems: [aFilesystem({ imageUsedBytes })] });
    return storeTargets(snapshot, { ...defaultImageLimits, ...limits }, forest);
  };

  test("triggers only if exceeded", () => {
    expect(limited({ storeBudgetBytes: 299n }, null)).toMatchObject([
      { kind: "store-bytes", maximumBytes: 299n, wantedBytes: 1n },
    ]);
    expect(limited({ storeBudgetBytes: 300n }, null)).toEqual([]);
  });
});

describe("what the runtime reports for images", () => {
  const large = [anImage("large", { sizeBytes: 32n * MIB }), anImage("small", { sizeBytes: 1n })];

  test.each([
    ["is ignored far below the largest image", 65_000n, { bytes: null, inodes: null }],
    [
      "is ignored below a quarter of the largest image",
      8n * MIB - 1n,
      { bytes: null, inodes: null },
    ],
    ["counts from a quarter of the largest image on", 8n * MIB, { bytes: 8n * MIB, inodes: 12n }],
    ["is ignored if it is 0", 0n, { bytes: null, inodes: 12n }],
  ])("%s", (_, imageUsedBytes, use) => {
    const filesystem = aFilesystem({ imageUsedBytes, imageInodesUsed: 12n });
    for (const images of [large, large.toReversed()])
      expect(imageUseOf(filesystem, { images, filesystems: [filesystem] })).toEqual(use);
  });
});

test("the image filesystem is the first that holds images, or none if the runtime reports none", () => {
  const root = aFilesystem({ roles: ["nodefs"], path: "/" });
  const [first, second] = [aFilesystem({ path: "/a" }), aFilesystem({ path: "/b" })];
  expect(storeFilesystem({ filesystems: [root, first, second] })).toBe(first);
  expect(storeFilesystem({ filesystems: [root] })).toBeNull();
});

describe("during a pass", () => {
  const none = { free: 0n, gained: 0n };
  const start: Progress = {
    accounting: "measured",
    disks: new Map([["8:1", { bytes: none, inodes: none }]]),
    storeBytes: null,
    reportedBytes: 0n,
    estimatedBytes: 0n,
    removed: 0,
  };
  const bytes = (free: bigint, gained: bigint): Partial<Progress> => ({
    disks: new Map([["8:1", { bytes: { free, gained }, inodes: none }]]),
  });
  const inodesOf = (free: bigint, gained: bigint): Partial<Progress> => ({
    disks: new Map([["8:1", { bytes: none, inodes: { free, gained } }]]),
  });
  const freed = (reportedBytes: bigint, estimatedBytes: bigint): Partial<Progress> => ({
    reportedBytes,
    estimatedBytes,
  });
  const reported = { accounting: "reported" } as const;
  const measured = (storeBytes: bigint): Partial<Progress> => ({ storeBytes });
  const space = spaceTarget(100n, 10n);
  const zero = spaceTarget(100n, 0n);
  const budget: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 100n,
    wantedBytes: 20n,
  };
  const inodes = inodeTarget(500n, 100n);

  test.each<[string, readonly ImageTarget[], Partial<Progress>, ReturnType<typeof targetsMet>]>([
    ["space is not met if nothing was freed", [zero], bytes(90n, 0n), null],
    ["space is met by what the pass itself freed", [zero], bytes(90n, 1n), "own-gain-reached"],
    ["space is met by what is available", [zero], bytes(100n, 0n), "target-reached"],
    ["space is not met by another disk", [space], { disks: new Map() }, null],
    ["space is not met by reported sizes if nothing was removed", [zero], reported, null],
    ["a budget is not met by smaller estimates", [budget], freed(50n, 19n), null],
    ["an unmeasured budget is met by estimates", [budget], freed(0n, 20n), "target-reached"],
    [
      "a budget is not met by smaller reports",
      [budget],
      { ...reported, ...measured(1n), ...freed(19n, 0n) },
      null,
    ],
    [
      "a budget is met by reported sizes",
      [budget],
      { ...reported, ...freed(21n, 0n) },
      "target-reached",
    ],
    [
      "a budget and space are not met if one is not",
      [space, budget],
      { ...bytes(90n, 10n), ...measured(101n) },
      null,
    ],
    [
      "a budget and space are met if both are",
      [space, budget],
      { ...bytes(90n, 10n), ...measured(100n) },
      "own-gain-reached",
    ],
    ["inodes are not met if too few are free", [inodes], inodesOf(499n, 99n), null],
    ["inodes are met by what is free", [inodes], inodesOf(500n, 0n), "target-reached"],
    ["inodes are met by what the pass freed", [inodes], inodesOf(499n, 100n), "own-gain-reached"],
    ["inodes are not met by bytes", [inodes], bytes(1_000n, 1_000n), null],
    ["inodes are not met by another disk", [{ ...inodes, device: "8:2" }], {}, null],
  ])("a target of %s", (_, targets, progress, end) => {
    expect(targetsMet(targets, { ...start, ...progress })).toBe(end);
  });

  test("with reported sizes, a target of zero is met after all if there was none to remove", () => {
    expect(metAfterAll([zero], { ...start, ...reported })).toBe("target-reached");
  });

  test.each<[string, ImageTarget, Partial<Progress>, bigint | null]>([
    ["what the disk lacks", spaceTarget(100n, 40n), bytes(90n, 0n), 10n],
    ["what the own gain lacks, if that is less", spaceTarget(100n, 40n), bytes(10n, 35n), 5n],
    [
      "all of it on a disk that was not measured",
      spaceTarget(100n, 200n),
      { disks: new Map() },
      100n,
    ],
    ["what the store has above its budget", budget, { storeBytes: 130n }, 30n],
    ["unknown for a store that is not measured", budget, { storeBytes: null }, null],
  ])("what a target lacks is %s", (_, target, progress, lacked) => {
    expect(lackedBytes(target, { ...start, ...progress })).toBe(lacked);
  });
});
