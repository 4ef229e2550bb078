import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { chainId } from "../../src/model/ids.ts";
import { type ChainParents, Layers } from "../../src/policy/layers.ts";
import { layersOf } from "../support/build/layers.ts";
import { anImage, MIB } from "../support/build/values.ts";

const sized = (name: string, mib: number) => anImage(name, { sizeBytes: BigInt(mib) * MIB });
const [base, app, other] = [sized("base", 100), sized("app", 150), sized("other", 180)];

describe("what the removal of an image frees", () => {
  test.each([
    ["is all of it if no other image has its first layer", ["a/b"], [100n]],
    ["is what it has beyond its base", ["b", "b/x"], [0n, 150n]],
    ["is nothing if another image has all of its layers", ["b/x", "b/x/y"], [0n, 150n]],
    [
      "is its own layers' share if it is the smallest of those that share",
      ["b/x", "b/y"],
      [50n, 150n],
    ],
    [
      "is what it has beyond the smallest that shares as much as any does",
      ["b/m/x", "b/m/y", "b/z"],
      [33n, 100n, 180n],
    ],
  ] as const)("%s", (_, chains, freed) => {
    const images = [base, app, other].slice(0, chains.length);
    const layers = layersOf(...images.map((image, at) => [image, chains[at] ?? ""] as const));
    const removals = layers.removals();
    expect(images.map(({ id }) => (removals.remove(id) ?? -1n) / MIB)).toEqual([...freed]);
  });

  test("depends on what was removed before: a base without its images is freed whole", () => {
    const removals = layersOf([base, "b"], [app, "b/x"], [other, "b/y"]).removals();
    expect([app, other, base].map(({ id }) => removals.remove(id))).toEqual([
      50n * MIB,
      80n * MIB,
      100n * MIB,
    ]);
  });

  test("is unknown without its layers", () => {
    expect(layersOf().removals().remove(base.id)).toBeNull();
  });
});

test("images that share layers take the shared ones once, as large as the sizes allow", () => {
  const layers = layersOf([base, "b"], [app, "b/x"], [other, "b/y"]);
  expect(layers.sizeOf([base, app, other])).toBe(230n * MIB);
  expect(layers.sizeOf([app, other])).toBe(180n * MIB);
  expect(layersOf([app, "b/x"], [other, "b/y"]).sizeOf([app, other])).toBe(180n * MIB);
});

test.each<[string, ChainParents]>([
  ["names itself as its parent", new Map([[chainId("c"), chainId("c")]])],
  ["is not known to its first layer", new Map([[chainId("c"), chainId("b")]])],
])("an image whose chain %s is left out", (_, parents) => {
  const layers = new Layers([{ ...app, chain: chainId("c") }], parents);
  expect([layers.has(app.id), layers.depthOf(app.id)]).toEqual([false, 0]);
});

test("an image that is listed twice shares no layers with itself", () => {
  const layers = layersOf([base, "b"], [base, "b"]);
  expect(layers.builtOn(base.id)).toEqual([]);
  expect(layers.removals().remove(base.id)).toBe(base.sizeBytes);
});

test("of two images with the same layers the removal of the larger frees nothing", () => {
  expect(layersOf([base, "b"], [app, "b"]).removals().remove(app.id)).toBe(0n);
});

test("an image is built on one that has all of its layers, and is placed by it", () => {
  const lone = sized("lone", 10);
  const layers = layersOf([base, "b"], [app, "b/x"], [other, "b/y"]);
  expect(layers.builtOn(base.id)).toEqual([app.id, other.id]);
  expect(layers.builtOn(app.id)).toEqual([]);
  const order = [base, app, lone, other].map(({ id }) => id);
  expect([...layers.lastPlaces(order).values()]).toEqual([3, 1, 2, 3]);
});

const randomNode = fc
  .array(
    fc.record({
      chain: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 }),
      mib: fc.integer({ min: 1, max: 500 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((nodes) =>
    nodes.map(({ chain, mib }, at) => [sized(`image${at}`, mib), chain.join("/")] as const),
  );

test("no image is estimated to free more than its size, whatever the order", () => {
  fc.assert(
    fc.property(randomNode, (images) => {
      const removals = layersOf(...images).removals();
      for (const [{ id, sizeBytes }] of images) {
        const freed = removals.remove(id) ?? -1n;
        expect(freed >= 0n && freed <= sizeBytes).toBe(true);
      }
    }),
  );
});

test("images together take no more than their sizes added up", () => {
  fc.assert(
    fc.property(randomNode, (images) => {
      const all = images.map(([image]) => image);
      const layers = layersOf(...images);
      const sum = all.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0n);
      expect(layers.sizeOf(all) <= sum).toBe(true);
    }),
  );
});
