import { describe, expect, test } from "bun:test";

import { imageId } from "../../../src/model/ids.ts";
import type { LayerForest } from "../../../src/policy/layer/layers.ts";
import { forestOf, type Layered } from "../../support/build/layers.ts";
import { MIB } from "../../support/build/values.ts";

const image = (id: string, layers: string, mib: bigint): Layered => [
  { id: imageId(id), sizeBytes: mib * MIB },
  layers,
];

const CONFIG = 32n * 1024n;
const unknown = imageId("unknown");

describe("an image with unknown layers", () => {
  const forest = forestOf(image("app", "base/app", 30n));

  test("shares nothing, has no chain and no family, and has no estimate", () => {
    expect(forest.has(unknown)).toBeFalse();
    expect(forest.sharers(unknown, 9)).toEqual([]);
    expect(forest.chainOf(unknown)).toBeNull();
    expect(forest.layersOf(unknown)).toBeNull();
    expect(forest.familyOf(unknown)).toBeNull();
    expect(forest.removals().remove(unknown)).toBeNull();
  });
});

describe("an incomplete chain", () => {
  test("includes one of more than 1,024 layers, and no shorter one", () => {
    const long = (layers: number): string => Array.from({ length: layers }, () => "l").join("/");
    const [most, more] = [long(1024), long(1025)];
    expect(forestOf(image("most", most, 1n)).chainOf(imageId("most"))).toHaveLength(1024);
    expect(forestOf(image("more", more, 1n)).has(imageId("more"))).toBeFalse();
  });
});

test("an image that is listed twice counts once, with its first size", () => {
  const forest = forestOf(image("app", "base/app", 30n), image("app", "base/app", 90n));
  expect(forest.chainOf(imageId("app"))?.map(({ through }) => through)).toEqual([1, 1]);
  expect(forest.removals().remove(imageId("app"))).toMatchObject({ upperBytes: 30n * MIB });
});

test("images with all layers of another are named up to a number, without itself", () => {
  const forest = forestOf(
    image("base", "base", 20n),
    image("same", "base", 20n),
    image("equal", "base", 20n),
    image("one", "base/one", 30n),
    image("two", "base/two", 30n),
  );
  const base = imageId("base");
  expect(forest.sharers(base, 9).toSorted()).toEqual(["equal", "one", "same", "two"].map(imageId));
  for (const most of [1, 2, 3]) expect(forest.sharers(base, most)).toHaveLength(most);
  expect(forest.sharers(imageId("one"), 9)).toEqual([]);
});

test("layers have the sizes that images end with, in equal parts in between, and none below nothing", () => {
  const forest = forestOf(
    image("base", "base", 20n),
    image("one", "base/a/b", 40n),
    image("less", "base/c", 15n),
  );
  const sizes = (id: string) =>
    forest.layersOf(imageId(id))?.map(({ sizeBytes }) => sizeBytes / MIB);
  expect(sizes("one")).toEqual([15n, 12n, 12n]);
  expect(sizes("less")).toEqual([15n, 0n]);
  expect(forest.layersOf(imageId("one"))?.map(({ chain }) => String(chain))).toEqual([
    "base",
    "base/a",
    "base/a/b",
  ]);
});

describe("what a removal frees", () => {
  const forest = forestOf(
    image("base", "base", 20n),
    image("one", "base/one", 30n),
    image("two", "base/two", 50n),
  );

  test("is nothing if the image was removed before in the same pass", () => {
    const removals = forest.removals();
    removals.remove(imageId("one"));
    expect(removals.remove(imageId("one"))).toEqual({
      lowerBytes: 0n,
      estimateBytes: 0n,
      upperBytes: 0n,
    });
    // The base is still needed by the one that is there.
    expect(removals.remove(imageId("two"))?.estimateBytes).toBe(30n * MIB);
  });
});

test("of two images that end with the same layer, the second removal frees by the second's own size", () => {
  const removals = forestOf(image("one", "base", 20n), image("two", "base", 21n)).removals();
  removals.remove(imageId("one"));
  expect(removals.remove(imageId("two"))).toMatchObject({ upperBytes: 21n * MIB });
});

describe("the bounds of a path", () => {
  const pathsOf = (forest: LayerForest, id: string) =>
    forest.chainOf(imageId(id))?.map(({ path }) => path);

  test("come from the largest and the smallest of the images that end there", () => {
    for (const sizes of [
      [20n, 21n],
      [21n, 20n],
    ]) {
      const images = sizes.map((mib) => image(`of ${mib}`, "base", mib));
      expect(pathsOf(forestOf(...images), "of 20")).toEqual([
        { lowerBytes: 20n * MIB, estimateBytes: 20n * MIB, upperBytes: 21n * MIB - CONFIG },
      ]);
    }
  });

  test("contain the estimate even if children contradict each other and their base", () => {
    const forest = forestOf(
      image("base", "base", 20n),
      image("small", "base/small", 10n),
      image("app", "base/lib/app", 15n),
    );
    expect(pathsOf(forest, "app")?.[1]).toEqual({
      lowerBytes: 15n * MIB,
      estimateBytes: 15n * MIB,
      upperBytes: 20n * MIB - CONFIG,
    });
  });
});
