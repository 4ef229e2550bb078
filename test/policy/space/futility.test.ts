import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { Futility } from "../../../src/model/plan.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import { breakdownOf } from "../../../src/policy/space/disk.ts";
import {
  apart,
  boundOf,
  type DiskTarget,
  futilityDiffers,
  futilityOf,
} from "../../../src/policy/space/futility.ts";
import { aFilesystem, anImage, GIB } from "../../support/build/values.ts";

const target: DiskTarget = {
  kind: "available-bytes",
  trigger: { kind: "space" },
  device: "8:1",
  path: "/var/lib/containerd",
  availableBytes: 20n * GIB,
  wantedBytes: 17n * GIB,
  relievedBytes: 16n * GIB,
};
const images = [anImage("a", { sizeBytes: 2n * GIB }), anImage("b", { sizeBytes: 1n * GIB })];
const full = (change: Partial<Filesystem> = {}) =>
  aFilesystem({ availableBytes: 3n * GIB, ...change });
const none = { images, filesystems: [], logs: null, users: new Map(), layers: null };

const few = { used: null, unused: 3n, mostPerMille: null, inUse: 1_000n };

describe("the bound", () => {
  test.each([
    ["what the layers can take", { mostPerMille: 2500n }, 7n],
    ["what the layers can take, even beyond five times", { mostPerMille: 6250n }, 18n],
    ["the layers where they are tighter than the figure", { used: 10n, mostPerMille: 1000n }, 3n],
    ["the figure where it is tighter than the layers", { used: 10n, mostPerMille: 5000n }, 13n],
    ["no more than is in use, by the figure", { used: 10n, inUse: 12n }, 12n],
    ["no more than is in use, without one", { inUse: 14n }, 14n],
    ["no more than is in use, by the layers", { mostPerMille: 5000n, inUse: 14n }, 14n],
  ])("is %s", (_, change, most) => {
    expect(boundOf("bytes", { ...few, ...change })).toBe(most);
  });
});

test("layers of an image in use do not count in the bound, and an image of unknown layers counts in full", () => {
  const base = chainId("base");
  const child = (word: string, sizeBytes: bigint) => ({
    image: anImage(word, { sizeBytes }),
    chain: chainId(`base/${word}`),
  });
  const children = [child("used", 10n * GIB), child("one", 10n * GIB), child("two", 11n * GIB)];
  const alone = anImage("alone", { sizeBytes: 2n * GIB });
  const all = [
    anImage("root", { sizeBytes: 9n * GIB }),
    ...children.map(({ image }) => image),
    alone,
  ];
  const parents = new Map([[base, null], ...children.map(({ chain }) => [chain, base] as const)]);
  const forest = new LayerForest(
    [
      { id: anImage("root").id, sizeBytes: 9n * GIB, chain: base },
      ...children.map(({ image: { id, sizeBytes }, chain }) => ({ id, sizeBytes, chain })),
    ],
    parents,
  );
  const users = new Map([[anImage("used").id, []]]);
  const large = full({ imageUsedBytes: null, capacityBytes: 1_000n * GIB });
  const facts = { ...none, images: all, users };
  const without = futilityOf(target, large, facts);
  expect(without?.boundBytes).toBe(5n * (9n + 10n + 11n + 2n) * GIB);
  const withLayers = { ...facts, layers: { forest, mostPerMille: 5000n } };
  const most = futilityOf(target, large, withLayers)?.boundBytes;
  // 1 and 2 GiB of their own, 2 GiB of the unknown one; the root frees no more than its configuration.
  expect(most).toBeGreaterThanOrEqual(5n * 5n * GIB);
  expect(most).toBeLessThan(5n * 5n * GIB + GIB / 100n);
});

describe("what fills the disk", () => {
  const logs = {
    kind: "read" as const,
    podLogsDirectory: "/l",
    podLogs: [],
    strays: [],
    danglingLinks: [],
    sizeBytes: 5n * GIB,
  };

  test("is never negative, however large the reported parts", () => {
    const parts = breakdownOf(full({ imageUsedBytes: 93n * GIB, containerUsedBytes: 9n * GIB }), {
      ...none,
      logs,
    });
    expect(parts).toMatchObject({
      imagesBytes: 96n * GIB,
      containersBytes: 1n * GIB,
      logsBytes: 0n,
      otherBytes: 0n,
    });
  });

  test("counts a part that is reported below nothing as nothing", () => {
    const parts = breakdownOf(full({ imageUsedBytes: 10n * GIB, containerUsedBytes: -GIB }), {
      ...none,
      logs: null,
    });
    expect(parts).toMatchObject({ containersBytes: 0n, otherBytes: 84n * GIB });
  });

  test("counts shared layers once where the runtime has no figure, and unknown ones at most", () => {
    const forest = new LayerForest(
      [
        { ...anImage("a", { sizeBytes: 2n * GIB }), chain: chainId("x/a") },
        { ...anImage("b", { sizeBytes: 2n * GIB }), chain: chainId("x") },
      ],
      new Map([
        [chainId("x"), null],
        [chainId("x/a"), chainId("x")],
      ]),
    );
    const all = [
      ...["a", "b"].map((word) => anImage(word, { sizeBytes: 2n * GIB })),
      anImage("other", { sizeBytes: 3n * GIB }),
    ];
    const layers = { forest, mostPerMille: 1000n };
    const crio = full({ imageUsedBytes: 65_000n });
    const facts = { images: all, filesystems: [crio], logs: null, layers };
    const { imagesBytes, imagesAtLeastBytes, otherBytes } = breakdownOf(crio, facts);
    const inTenths = (bytes: bigint) => Math.round(Number((bytes * 10n) / GIB));
    expect(imagesAtLeastBytes).toBe(2n * GIB);
    expect(inTenths(imagesBytes)).toBe(50);
    expect(inTenths(otherBytes)).toBe(920);
    const crammed = full({ imageUsedBytes: 65_000n, availableBytes: 99n * GIB });
    const parts = breakdownOf(crammed, { ...facts, filesystems: [crammed] });
    expect(parts).toMatchObject({ imagesBytes: GIB, imagesAtLeastBytes: GIB, otherBytes: 0n });
    const nothing = breakdownOf(crio, { ...facts, layers: null });
    expect(nothing).toMatchObject({ imagesBytes: 7n * GIB, imagesAtLeastBytes: 0n });
  });
});

describe("a changed state", () => {
  const judged = (change: Partial<Filesystem>, facts: typeof none): Futility => {
    const futility = futilityOf(target, full(change), facts);
    if (futility === null) throw new Error("of bytes something can always be said");
    return futility;
  };
  const at = (availableBytes: bigint) => judged({ availableBytes }, none);

  test("needs two percent of the disk, not a rotated file", () => {
    expect(futilityDiffers(at(3n * GIB), at(4n * GIB))).toBeFalse();
    expect(futilityDiffers(at(4n * GIB), at(3n * GIB))).toBeFalse();
    expect(futilityDiffers(at(3n * GIB), at(5n * GIB))).toBeTrue();
    expect(apart(5n, 5n, 0n)).toBeFalse();
  });

  test("includes another bound, unless nothing is left to free", () => {
    const one = { ...none, images: [anImage("a", { sizeBytes: GIB })] };
    const nothing = { ...none, images: [] };
    const withImages = (facts: typeof none) => judged({ imageUsedBytes: null }, facts);
    expect(futilityDiffers(withImages(one), withImages(none))).toBeTrue();
    expect(futilityDiffers(withImages(none), withImages(nothing))).toBeFalse();
  });
});

const inodes: DiskTarget = {
  kind: "free-inodes",
  trigger: { kind: "inodes" },
  device: "8:1",
  path: "/var/lib/containerd",
  inodesFree: 100_000n,
  wantedInodes: 90_000n,
  relievedInodes: 50_000n,
};
const two = { ...none, images: [anImage("a"), anImage("b")] };
const short = (change: Partial<Filesystem> = {}) => aFilesystem({ inodesFree: 10_000n, ...change });

test("a bound of inodes that is exactly enough is not futile", () => {
  const exact = futilityOf(inodes, short({ imageInodesUsed: 39_936n }), two);
  expect(exact).toMatchObject({ futile: false, inodes: { bound: 40_000n, needed: 40_000n } });
});

test("the state of a disk short of inodes changes when the bound or the free inodes change by two percent", () => {
  const state = (bound: bigint, free: bigint) => ({
    ...futilityOf(target, full(), none)!,
    inodes: { bound, needed: 1n, free, capacity: 1_000n },
  });
  expect(futilityDiffers(state(100n, 10n), state(100n, 10n))).toBeFalse();
  expect(futilityDiffers(state(100n, 10n), state(119n, 10n))).toBeFalse();
  expect(futilityDiffers(state(100n, 10n), state(120n, 10n))).toBeTrue();
  expect(futilityDiffers(state(100n, 10n), state(80n, 10n))).toBeTrue();
  expect(futilityDiffers(state(100n, 10n), state(0n, 10n))).toBeFalse();
  expect(futilityDiffers(state(100n, 10n), state(100n, 30n))).toBeTrue();
});
