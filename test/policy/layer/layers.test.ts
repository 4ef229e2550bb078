import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { type ChainId, chainId, type ImageId, imageId } from "../../../src/model/ids.ts";
import { orderByLayers } from "../../../src/policy/layer/layer-order.ts";
import { type LayeredImage, LayerForest } from "../../../src/policy/layer/layers.ts";
import { futilityOf } from "../../../src/policy/space/futility.ts";
import { forestOf } from "../../support/build/layers.ts";
import { aCandidate, aFilesystem, anImage, MIB, spaceTarget } from "../../support/build/values.ts";

const target = spaceTarget(10n ** 13n, 0n);

/** An image by the layers of a small pool, so that prefixes are often shared; `config` is what its size counts beside them. */
interface Recipe {
  readonly layers: readonly number[];
  readonly config: number;
}

const CONFIG_MOST = 32 * 1024;

const recipes = fc.array(
  fc.record({
    layers: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 6 }),
    config: fc.integer({ min: 0, max: CONFIG_MOST }),
  }),
  { minLength: 1, maxLength: 14 },
);
/** The size of a layer depends on its whole chain; large and small ones mix. */
const sizes = fc.func(
  fc.oneof(fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 0, max: 1e9 })),
);

const chainsOf = ({ layers }: Recipe): readonly ChainId[] =>
  layers.map((_, index) => chainId(layers.slice(0, index + 1).join("/")));

interface Layered extends LayeredImage {
  /** From the first layer to the last. */
  readonly layers: readonly ChainId[];
}

interface World {
  readonly images: readonly Layered[];
  readonly forest: LayerForest;
  readonly layerBytes: (chain: ChainId) => bigint;
  readonly configBytes: ReadonlyMap<ImageId, bigint>;
}

function worldOf(made: readonly Recipe[], sizeOf: (chain: string) => number): World {
  const layerBytes = (chain: ChainId): bigint => BigInt(sizeOf(chain));
  const configBytes = new Map<ImageId, bigint>();
  const images = made.map((recipe, index) => {
    const chain = chainsOf(recipe);
    const id = imageId(`image-${index}`);
    configBytes.set(id, BigInt(recipe.config));
    const sizeBytes = chain.reduce((sum, one) => sum + layerBytes(one), BigInt(recipe.config));
    return { id, layers: chain, chain: lastOf(chain), sizeBytes };
  });
  const parents = new Map(
    images.flatMap(({ layers }) => layers.map((one, at) => [one, layers[at - 1] ?? null])),
  );
  return {
    images,
    forest: new LayerForest(images, parents),
    layerBytes,
    configBytes,
  };
}

/** What really lies on the disk, as sets: each layer once, each configuration once. */
function diskBytes(world: World, there: readonly Layered[]): bigint {
  const stored = new Set(there.flatMap(({ layers }) => layers));
  const ofLayers = [...stored].reduce((sum, chain) => sum + world.layerBytes(chain), 0n);
  return there.reduce((sum, { id }) => sum + (world.configBytes.get(id) ?? 0n), ofLayers);
}

const shuffled = (seed: number, images: readonly Layered[]): readonly Layered[] =>
  images.toSorted((a, b) => mixed(seed, a.id) - mixed(seed, b.id));

const mixed = (seed: number, id: string): number => Number(Bun.hash(`${seed} ${id}`) & 0xffffffn);

test("the freed bytes of each removal are within its bounds, for random images in any order", () => {
  fc.assert(
    fc.property(recipes, sizes, fc.integer(), (made, sizeOf, seed) => {
      const world = worldOf(made, sizeOf);
      const removals = world.forest.removals();
      let there = world.images;
      for (const image of shuffled(seed, world.images)) {
        const before = diskBytes(world, there);
        there = there.filter(({ id }) => id !== image.id);
        const freed = before - diskBytes(world, there);
        const bounds = removals.remove(image.id);
        if (bounds === null) throw new Error("its layers are known");
        expect(bounds.lowerBytes).toBeLessThanOrEqual(freed);
        expect(bounds.upperBytes).toBeGreaterThanOrEqual(freed);
        expect(bounds.lowerBytes).toBeLessThanOrEqual(bounds.estimateBytes);
        expect(bounds.estimateBytes).toBeLessThanOrEqual(bounds.upperBytes);
      }
      expect(there).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test("the bound of what removing all unused images frees is never below what the disk then gives back, nor above what is in use", () => {
  const perMille = fc.integer({ min: 1000, max: 5000 });
  fc.assert(
    fc.property(recipes, sizes, fc.func(fc.boolean()), perMille, fc.nat(2e9), (...node) => {
      const [made, sizeOf, isUsed, factor, otherBytes] = node;
      const world = worldOf(made, sizeOf);
      const onDisk = (bytes: bigint): bigint => (bytes * BigInt(factor)) / 1000n;
      const used = world.images.filter(({ id }) => isUsed(id));
      const images = world.images.map(({ id, sizeBytes }) => ({
        ...anImage("x"),
        id,
        sizeBytes,
      }));
      const inUse = onDisk(diskBytes(world, world.images)) + BigInt(otherBytes);
      const freed = onDisk(diskBytes(world, world.images)) - onDisk(diskBytes(world, used));
      const capacityBytes = 10n ** 13n;
      const judged = (imageUsedBytes: bigint | null): bigint => {
        const filesystem = aFilesystem({
          capacityBytes,
          availableBytes: capacityBytes - inUse,
          imageUsedBytes,
        });
        const futility = futilityOf(target, filesystem, {
          images,
          filesystems: [filesystem],
          logs: null,
          users: new Map(used.map(({ id }) => [id, []])),
          layers: { forest: world.forest, mostPerMille: BigInt(factor) },
        });
        if (futility === null) throw new Error("of bytes something can always be said");
        return futility.boundBytes;
      };
      // Without a figure; and as containerd has it: what is unpacked, without the blobs.
      const unpacked = onDisk(diskBytes(world, world.images)) - diskBytes(world, world.images);
      for (const figure of [null, unpacked]) {
        // Each product of the factor is rounded down.
        expect(judged(figure) + 1n).toBeGreaterThanOrEqual(freed);
        expect(judged(figure)).toBeLessThanOrEqual(inUse);
      }
    }),
    { numRuns: 500 },
  );
});

describe("the order of removal by layers", () => {
  const subset = fc.func(fc.boolean());

  test("keeps an image exactly if an image that is not a candidate has all of its layers", () => {
    fc.assert(
      fc.property(recipes, sizes, subset, (made, sizeOf, isCandidate) => {
        const { images, forest } = worldOf(made, sizeOf);
        const candidates = images.filter(({ id }) => isCandidate(id)).map((image) => ({ image }));
        const kept = images.filter(({ id }) => !isCandidate(id));
        const order = orderOf(forest, candidates);
        const expected = candidates.filter(({ image }) =>
          kept.some(({ layers }) => layers.includes(image.chain)),
        );
        expect(new Set(order.staying)).toEqual(new Set(expected));
        expect(order.staying.length + order.candidates.length).toBe(candidates.length);
      }),
      { numRuns: 300 },
    );
  });

  test("puts no image before one built on it, and otherwise keeps the order", () => {
    fc.assert(
      fc.property(recipes, sizes, (made, sizeOf) => {
        const { images, forest } = worldOf(made, sizeOf);
        const candidates = images.map((image) => ({ image }));
        const order = orderOf(forest, candidates).candidates;
        for (const [index, { image }] of order.entries()) {
          const later = order.slice(index + 1).map((one) => one.image);
          const longer = later.filter(
            ({ layers }) => layers.length > image.layers.length && layers.includes(image.chain),
          );
          expect(longer).toEqual([]);
          // Whoever goes before an image that was due earlier has no reason but that image's own children.
          for (const other of later) {
            if (images.indexOf(other) > images.indexOf(image)) continue;
            const last = Math.max(
              ...images.flatMap(({ layers }, place) =>
                layers.includes(other.chain) ? [place] : [],
              ),
            );
            expect(last).toBeGreaterThanOrEqual(images.indexOf(image));
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});

function lastOf(chain: readonly ChainId[]): ChainId {
  const last = chain[chain.length - 1];
  if (last === undefined) throw new Error("a chain has layers");
  return last;
}

/** The candidates in the order of removal, and those that are kept for their layers. */
function orderOf<Candidate extends { readonly image: { readonly id: ImageId } }>(
  forest: LayerForest,
  candidates: readonly Candidate[],
): { readonly candidates: readonly Candidate[]; readonly staying: readonly Candidate[] } {
  const planned = candidates.map(({ image: { id } }) =>
    aCandidate("any", { image: anImage("any", { id }) }),
  );
  const gain = { typical: null, most: 5000n };
  const order = orderByLayers({ candidates: planned, kept: [] }, { forest, gain }, []);
  const given = (those: readonly { readonly image: { readonly id: ImageId } }[]) =>
    those.flatMap(({ image }) => candidates.find((one) => one.image.id === image.id) ?? []);
  return { candidates: given(order.candidates), staying: given(order.kept) };
}

const image = (id: string, layers: string, mib: bigint) =>
  [{ id: imageId(id), sizeBytes: mib * MIB }, layers] as const;

const unknown = imageId("unknown");

test("an image with unknown layers shares nothing, has no chain and no family, and has no estimate", () => {
  const forest = forestOf(image("app", "base/app", 30n));
  expect(forest.has(unknown)).toBeFalse();
  expect(forest.sharers(unknown, 9)).toEqual([]);
  expect(forest.chainOf(unknown)).toBeNull();
  expect(forest.layersOf(unknown)).toBeNull();
  expect(forest.familyOf(unknown)).toBeNull();
  expect(forest.removals().remove(unknown)).toBeNull();
});

test("a chain of more than 1,024 layers is incomplete, and no shorter one", () => {
  const long = (layers: number): string => Array.from({ length: layers }, () => "l").join("/");
  const [most, more] = [long(1024), long(1025)];
  expect(forestOf(image("most", most, 1n)).chainOf(imageId("most"))).toHaveLength(1024);
  expect(forestOf(image("most", most, 1n)).isComplete).toBeTrue();
  expect(forestOf(image("more", more, 1n)).has(imageId("more"))).toBeFalse();
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
  const looked: string[] = [];
  const counts = (id: string): boolean => looked.push(id) > 1;
  expect(forest.sharers(base, 1, counts)).toEqual([imageId(looked[1] ?? "")]);
  expect(looked).toHaveLength(2);
  expect(forest.sharers(imageId("one"), 9)).toEqual([]);
});

test("layers have the sizes that images end with, in equal parts in between, and none below nothing", () => {
  const forest = forestOf(
    image("base", "base", 20n),
    image("one", "base/a/b", 40n),
    image("less", "base/c", 15n),
  );
  const sizesOf = (id: string) =>
    forest.layersOf(imageId(id))?.map(({ sizeBytes }) => sizeBytes / MIB);
  expect(sizesOf("one")).toEqual([15n, 12n, 12n]);
  expect(sizesOf("less")).toEqual([15n, 0n]);
  expect(forest.layersOf(imageId("one"))?.map(({ chain }) => String(chain))).toEqual([
    "base",
    "base/a",
    "base/a/b",
  ]);
});

test("an image that was removed before in the same pass frees nothing", () => {
  const removals = forestOf(image("base", "base", 20n), image("one", "base/one", 30n)).removals();
  removals.remove(imageId("one"));
  const nothing = { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 0n };
  expect(removals.remove(imageId("one"))).toEqual(nothing);
});

test("the bounds of a path come from the largest and the smallest image that end there, whatever children say", () => {
  const pathsOf = (id: string, ...images: readonly ReturnType<typeof image>[]) =>
    forestOf(...images)
      .chainOf(imageId(id))
      ?.map(({ path }) => path);
  const bounds = (mib: bigint, most: bigint) => ({
    lowerBytes: mib * MIB,
    estimateBytes: mib * MIB,
    upperBytes: most * MIB - BigInt(CONFIG_MOST),
  });
  const [small, large] = [image("small", "base", 20n), image("large", "base", 21n)];
  expect(pathsOf("small", small, large)).toEqual([bounds(20n, 21n)]);
  expect(pathsOf("small", large, small)).toEqual([bounds(20n, 21n)]);
  const contradicting = [image("other", "base/other", 10n), image("app", "base/lib/app", 15n)];
  expect(pathsOf("app", small, ...contradicting)?.[1]).toEqual(bounds(15n, 20n));
});
