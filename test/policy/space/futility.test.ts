import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageItem } from "../../../src/model/pass.ts";
import type {
  Bounds,
  Futility,
  ImageCandidate,
  ImagePlan,
  ImageTarget,
  Purpose,
} from "../../../src/model/plan.ts";
import type { Filesystem, Snapshot } from "../../../src/model/snapshot.ts";
import { duration } from "../../../src/model/time.ts";
import type { Facts } from "../../../src/policy/facts.ts";
import { breakdownOf } from "../../../src/policy/space/disk.ts";
import {
  apart,
  boundOf,
  futilityDiffers,
  futilityOf,
  targetReach,
} from "../../../src/policy/space/futility.ts";
import type { Progress } from "../../../src/policy/space/targets.ts";
import { forestOf } from "../../support/build/layers.ts";
import { noLogs } from "../../support/build/pods.ts";
import {
  aCandidate,
  aFilesystem,
  aLedger,
  anImage,
  aSnapshot,
  defaultLimits,
  GIB,
  inodeTarget,
  NOW,
  spaceTarget,
} from "../../support/build/values.ts";

const target = { ...spaceTarget(20n * GIB, 17n * GIB), relievedBytes: 16n * GIB };
const images = [anImage("a", { sizeBytes: 2n * GIB }), anImage("b", { sizeBytes: 1n * GIB })];
const full = (change: Partial<Filesystem> = {}) =>
  aFilesystem({ availableBytes: 3n * GIB, ...change });
const none = { images, filesystems: [], logs: null, users: new Map(), layers: null };

const few = { used: null, unused: 3n, mostPerMille: null, inUse: 1_000n };

test.each([
  ["what the layers can take", { mostPerMille: 2500n }, 7n],
  ["what the layers can take, even beyond five times", { mostPerMille: 6250n }, 18n],
  ["the layers where they are tighter than the figure", { used: 10n, mostPerMille: 1000n }, 3n],
  ["the figure where it is tighter than the layers", { used: 10n, mostPerMille: 5000n }, 13n],
  ["no more than is in use, by the figure", { used: 10n, inUse: 12n }, 12n],
  ["no more than is in use, without one", { inUse: 14n }, 14n],
  ["no more than is in use, by the layers", { mostPerMille: 5000n, inUse: 14n }, 14n],
])("the bound is %s", (_, change, most) => {
  expect(boundOf("bytes", { ...few, ...change })).toBe(most);
});

test("layers of an image in use do not count in the bound, and an image of unknown layers counts in full", () => {
  const sized = (word: string, gibibytes: bigint) => anImage(word, { sizeBytes: gibibytes * GIB });
  const [root, used] = [sized("root", 9n), sized("used", 10n)];
  const [one, two, alone] = [sized("one", 10n), sized("two", 11n), sized("alone", 2n)];
  const all = [root, used, one, two, alone];
  const forest = forestOf(
    [root, "base"],
    [used, "base/used"],
    [one, "base/one"],
    [two, "base/two"],
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
  const logs = { ...noLogs, sizeBytes: 5n * GIB };

  test("is never negative, however large or small the reported parts", () => {
    const large = full({ imageUsedBytes: 93n * GIB, containerUsedBytes: 9n * GIB });
    const [imagesBytes, containersBytes] = [96n * GIB, 1n * GIB];
    const rest = { logsBytes: 0n, otherBytes: 0n };
    expect(breakdownOf(large, { ...none, logs })).toMatchObject({
      imagesBytes,
      containersBytes,
      ...rest,
    });
    const small = full({ imageUsedBytes: 10n * GIB, containerUsedBytes: -GIB });
    expect(breakdownOf(small, none)).toMatchObject({ containersBytes: 0n, otherBytes: 84n * GIB });
  });

  test("counts shared layers once where the runtime has no figure, and unknown ones at most", () => {
    const [app, base] = ["a", "b"].map((word) => anImage(word, { sizeBytes: 2n * GIB }));
    const forest = forestOf([app!, "x/a"], [base!, "x"]);
    const all = [app!, base!, anImage("other", { sizeBytes: 3n * GIB })];
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

const inodes = { ...inodeTarget(100_000n, 90_000n), relievedInodes: 50_000n };
const two = { ...none, images: [anImage("a"), anImage("b")] };
const short = (change: Partial<Filesystem> = {}) => aFilesystem({ inodesFree: 10_000n, ...change });

test("a bound of inodes that is exactly enough is not futile", () => {
  const exact = futilityOf(inodes, short({ imageInodesUsed: 39_936n }), two);
  expect(exact).toMatchObject({ futile: false, inodes: { bound: 40_000n, needed: 40_000n } });
});

test.each([
  [100n, 10n, false],
  [119n, 10n, false],
  [120n, 10n, true],
  [80n, 10n, true],
  [0n, 10n, false],
  [100n, 30n, true],
])("a bound of %p inodes with %p free differs from 100 with 10: %p", (bound, free, differs) => {
  const state = (of: { readonly bound: bigint; readonly free: bigint }) => ({
    ...futilityOf(target, full(), none)!,
    inodes: { ...of, needed: 1n, capacity: 1_000n },
  });
  expect(futilityDiffers(state({ bound: 100n, free: 10n }), state({ bound, free }))).toBe(differs);
});

const exactly = (bytes: bigint): Bounds => ({
  lowerBytes: bytes,
  estimateBytes: bytes,
  upperBytes: bytes,
});

describe("the reach of a pass", () => {
  /** On a disk of 100 GiB with 3 GiB available and images of 8 GiB: 10 GiB can be reached, 15 GiB cannot. */
  const milder = spaceTarget(10n * GIB, 7n * GIB);
  const stricter = spaceTarget(15n * GIB, 12n * GIB);
  const filesystem = aFilesystem({ availableBytes: 3n * GIB, imageUsedBytes: 8n * GIB });

  const freeInodes = (free: bigint, gained = 0n): Pick<Progress, "disks"> => ({
    disks: new Map([["8:1", { bytes: { free: 0n, gained: 0n }, inodes: { free, gained } }]]),
  });
  const withFree = (free: bigint): Pick<Progress, "disks"> => ({
    disks: new Map([["8:1", { bytes: { free, gained: 0n }, inodes: { free: 100n, gained: 0n } }]]),
  });
  const after = (change: Partial<Progress>): Progress => ({
    accounting: "measured",
    ...freeInodes(100n),
    storeBytes: null,
    reportedBytes: 0n,
    estimatedBytes: 0n,
    removed: 0,
    ...change,
  });

  /** How a pass judges on this node; candidates are its images in order. */
  const reachOf = (
    facts: Partial<Facts> & Pick<Facts, "snapshot">,
    targets: readonly ImageTarget[],
    candidates: ImagePlan["candidates"] = [],
  ) =>
    targetReach(
      { purpose: periodic, ledger: aLedger(), limits: defaultLimits, ...facts },
      { targets, candidates },
    );
  const periodic: Purpose = { kind: "periodic" };

  const removed = (candidate: ImageCandidate): ImageItem => ({
    candidate,
    trigger: { kind: "space" },
    result: {
      kind: "removed",
      reportedBytes: candidate.image.sizeBytes,
      measuredBytes: 0n,
      settled: "at-once",
    },
    startedAt: NOW,
    took: duration(0n),
  });

  const pressure: Purpose = { kind: "pressure", signals: ["imagefs.available"] };

  const all: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };
  const met = spaceTarget(2n * GIB, 0n);

  test.each([
    ["for pressure if all thresholds of its disk are in reach", pressure, [milder], true],
    ["not for pressure if one of them is not", pressure, [milder, stricter], false],
    ["not for pressure if none of them is", pressure, [stricter], false],
    ["for pressure if a target has no disk", pressure, [stricter, all], true],
    ["for a periodic pass if one is in reach", periodic, [milder, stricter], true],
    ["not for a periodic pass if none is in reach", periodic, [stricter], false],
    ["not for a periodic pass if only one that is met is", periodic, [met, stricter], false],
    ["for a periodic pass if a target has no disk", periodic, [stricter, all], true],
  ] as const)("targets can be reached %s", (_, purpose, targets, canReach) => {
    const snapshot = aSnapshot({ filesystems: [filesystem] });
    const now = after(withFree(3n * GIB));
    expect(reachOf({ snapshot, purpose }, targets)(now, [])).toBe(canReach);
  });

  test("targets beyond the capacity of a disk cannot be reached, however much its images could free", () => {
    const large = [anImage("a", { sizeBytes: 100n * GIB })];
    const free = aFilesystem({ availableBytes: 60n * GIB, imageUsedBytes: null });
    const snapshot = aSnapshot({ filesystems: [free], images: large });
    const now = after(withFree(60n * GIB));
    const reaches = (bytes: bigint) => reachOf({ snapshot }, [spaceTarget(bytes, 1n)])(now, []);
    expect([100n * GIB, 100n * GIB + 1n].map(reaches)).toEqual([true, false]);
  });

  describe("inodes", () => {
    const both = [anImage("a"), anImage("b")];
    const disk = aFilesystem({ inodesFree: 100n, imageInodesUsed: 1_000n });
    const relieved = (relievedInodes: bigint) => ({
      ...inodeTarget(9_000n, 8_900n),
      relievedInodes,
    });
    const reaches = (
      relievedInodes: bigint,
      change: Partial<Progress> = {},
      items: readonly ImageItem[] = [],
    ): boolean =>
      reachOf({ snapshot: aSnapshot({ filesystems: [disk], images: both }) }, [
        relieved(relievedInodes),
      ])(after(change), items);

    test("within reach are those of images, and a few for each remaining image", () => {
      expect(reaches(100n + 1_000n + 64n)).toBeTrue();
      expect(reaches(100n + 1_000n + 65n)).toBeFalse();
      expect(reaches(100n + 1_000n + 64n, {}, [removed(aCandidate("a"))])).toBeFalse();
      expect(reaches(100n + 1_000n + 32n, {}, [removed(aCandidate("a"))])).toBeTrue();
    });

    test("count once, and an unmeasured disk has none free", () => {
      expect(reaches(700n, freeInodes(100n, 464n))).toBeTrue();
      expect(reaches(701n, freeInodes(100n, 464n))).toBeFalse();
      expect(reaches(1_064n, { disks: new Map() })).toBeTrue();
      expect(reaches(1_065n, { disks: new Map() })).toBeFalse();
    });

    test("of an unknown disk count as in reach", () => {
      const elsewhere = { ...relieved(10_000n), device: "8:2" };
      const snapshot = aSnapshot({ filesystems: [disk], images: both });
      expect(reachOf({ snapshot }, [elsewhere])(after({}), [])).toBeTrue();
    });
  });

  describe("the layers of what is left", () => {
    const chain = (word: string) => ({ chain: chainId(word), builtAt: null });
    const sized = (word: string, gibibytes: bigint) =>
      aCandidate(word, { image: anImage(word, { sizeBytes: gibibytes * GIB }) });
    /** A base of 4 GiB, two images on it, and one without it: 7 GiB in all, 15 GiB as reported. */
    const [one, other, base, lone] = [
      sized("one", 5n),
      sized("two", 5n),
      sized("base", 4n),
      sized("lone", 1n),
    ];
    const candidates = [one, other, base, lone].map((candidate, at) => ({
      ...candidate,
      sharersKnown: true,
      unscaled: exactly([1n, 1n, 4n, 1n][at]! * GIB),
    }));
    const ledger = aLedger({
      origins: new Map([
        [one.image.id, chain("b/1")],
        [other.image.id, chain("b/2")],
        [base.image.id, chain("b")],
        [lone.image.id, chain("l")],
      ]),
      layers: new Map([
        [chainId("b"), { below: null, chain: [chainId("b")] }],
        [chainId("b/1"), { below: chainId("b"), chain: [chainId("b/1")] }],
        [chainId("b/2"), { below: chainId("b"), chain: [chainId("b/2")] }],
        [chainId("l"), { below: null, chain: [chainId("l")] }],
      ]),
    });
    /** What has to become free so that it is just in reach, to a hundredth of a GiB; nothing is free now. */
    const reachable = (
      items: readonly ImageItem[],
      runtime: Partial<Snapshot["runtime"]> = {},
      change: Partial<ImageLimits> = {},
    ) => {
      const listed = candidates.map(({ image }) => image);
      const disk = aFilesystem({ availableBytes: 0n, imageUsedBytes: 65_000n });
      const snapshot = aSnapshot({ images: listed, filesystems: [disk] });
      const node = { ...snapshot, runtime: { ...snapshot.runtime, ...runtime } };
      const limits = { ...defaultLimits, images: { ...defaultLimits.images, ...change } };
      const now = after(withFree(0n));
      const reaches = (bytes: bigint) =>
        reachOf(
          { snapshot: node, ledger, limits },
          [spaceTarget(bytes, bytes)],
          candidates,
        )(now, items);
      let [low, high] = [0n, 100n * GIB];
      while (high - low > GIB / 100n) {
        const middle = (low + high) / 2n;
        if (reaches(middle)) low = middle;
        else high = middle;
      }
      return Math.round(Number(low) / Number(GIB));
    };
    const crio = { name: "cri-o", version: "1.37.0" };

    test("are fewer after each removal, in whatever order", () => {
      const [first, second, third, fourth] = candidates.map((candidate) => removed(candidate));
      expect(reachable([first!], crio)).toBe(6);
      expect(reachable([first!, second!], crio)).toBe(5);
      expect(reachable([first!, second!, third!], crio)).toBe(1);
      expect(reachable([first!, second!, third!, fourth!], crio)).toBe(0);
      expect(reachable([fourth!, third!], crio)).toBe(6);
      expect(reachable([fourth!, third!, second!], crio)).toBe(5);
    });

    test("are left as they were by what was not removed, and do not count with reported sizes", () => {
      const failed: ImageItem = {
        ...removed(candidates[0]!),
        result: { kind: "failed", message: "busy", code: "failed" },
      };
      expect(reachable([failed], crio)).toBe(7);
      expect(reachable([], crio, { accounting: "reported" })).toBe(75);
    });
  });
});
