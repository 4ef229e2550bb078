import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import {
  judgeDisks,
  storeBytes,
  storeFilesystem,
  storeTargets,
} from "../../../src/policy/space/targets.ts";
import { aFilesystem, anImage, aSnapshot, defaultImageLimits } from "../../support/build/values.ts";

const judged = (limits: Partial<ImageLimits>, change: Partial<Filesystem> = {}) =>
  judgeDisks({ filesystems: [aFilesystem(change)] }, { ...defaultImageLimits, ...limits });

describe("a threshold on inodes", () => {
  const short = { availableBytes: 90n << 30n, inodes: 1_000n, inodesFree: 50n };

  test("has no target below it, and frees down to the low threshold from it on", () => {
    const limits = { inodeHighPercent: 95, inodeLowPercent: 60 };
    expect(judged(limits, { ...short, inodesFree: 60n }).targets).toEqual([]);
    expect(judged(limits, short).targets).toMatchObject([
      { kind: "free-inodes", inodesFree: 400n, wantedInodes: 350n, relievedInodes: 60n },
    ]);
  });

  test("frees down to five points below it if no low one is given, and never below 0", () => {
    expect(judged({ inodeHighPercent: 95 }, short).targets).toMatchObject([{ inodesFree: 100n }]);
    expect(judged({ inodeHighPercent: 3 }, short).targets).toMatchObject([{ inodesFree: 1_000n }]);
  });

  test("has no target if the filesystem has no inodes", () => {
    expect(
      judged({ inodeHighPercent: 1 }, { ...short, inodes: 0n, inodesFree: 0n }).targets,
    ).toEqual([]);
  });
});

test("a budget or a number of images asks for nothing where it is kept", () => {
  const snapshot = aSnapshot({ images: [anImage("a"), anImage("b")] });
  const kinds = (limits: Partial<ImageLimits>) =>
    storeTargets(snapshot, { ...defaultImageLimits, ...limits }, null).map(({ kind }) => kind);
  const taken = storeBytes(snapshot, null);
  expect(kinds({ storeBudgetBytes: taken - 1n, maximumImages: 1 })).toEqual([
    "store-bytes",
    "image-count",
  ]);
  expect(kinds({ storeBudgetBytes: taken, maximumImages: 2 })).toEqual([]);
  expect(kinds({ storeBudgetBytes: taken + 1n, maximumImages: 3 })).toEqual([]);
});

test("the image filesystem is the first that holds images, or none if the runtime reports none", () => {
  const root = aFilesystem({ roles: ["nodefs"], path: "/" });
  const [first, second] = [aFilesystem({ path: "/a" }), aFilesystem({ path: "/b" })];
  expect(storeFilesystem({ filesystems: [root, first, second] })).toBe(first);
  expect(storeFilesystem({ filesystems: [root] })).toBeNull();
});

test("a budget counts shared layers once where the runtime has no figure of its own", () => {
  const [one, two, other] = ["one", "two", "other"].map((word) =>
    anImage(word, { sizeBytes: 100n }),
  );
  const forest = new LayerForest(
    [
      { ...one!, chain: chainId("x") },
      { ...two!, chain: chainId("x/y") },
    ],
    new Map([
      [chainId("x"), null],
      [chainId("x/y"), chainId("x")],
    ]),
  );
  const images = [one!, two!, other!];
  const of = (imageUsedBytes: bigint | null) =>
    storeBytes(aSnapshot({ images, filesystems: [aFilesystem({ imageUsedBytes })] }), forest);
  expect(of(null)).toBe(200n);
  expect(of(150n)).toBe(150n);
});
