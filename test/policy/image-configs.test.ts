import { describe, expect, test } from "bun:test";

import { chainId, type ImageId, imageId } from "../../src/model/ids.ts";
import type { ImageConfig, LayerRun } from "../../src/model/ledger.ts";
import { type ImageConfigs, layersOf, rememberImageConfigs } from "../../src/policy/layers.ts";
import { anImage, MIB, NOW } from "../support/build/values.ts";

const NOTHING: ImageConfigs = { imageConfigs: new Map(), layers: new Map() };

const config = (...chain: readonly string[]): ImageConfig => ({
  chain: chain.map(chainId),
  builtAt: NOW,
});
const read = (...imageConfigs: readonly (readonly [string, ImageConfig])[]) =>
  new Map<ImageId, ImageConfig>(imageConfigs.map(([id, it]) => [imageId(id), it]));
const listed = (...ids: readonly string[]) => ids.map((id) => imageId(id));
const run = (below: string | null, ...chain: readonly string[]): LayerRun => ({
  below: below === null ? null : chainId(below),
  chain: chain.map(chainId),
});

const known = rememberImageConfigs(
  NOTHING,
  listed("base", "app"),
  read(["base", config("b")], ["app", config("b", "b/a")]),
);

describe("the recorded layers", () => {
  test("do not grow by an image removed since it was read", () => {
    const after = rememberImageConfigs(known, listed("base", "app"), read(["gone", config("g")]));
    expect(after.imageConfigs).toBe(known.imageConfigs);
  });

  test("drop an image that another one has replaced, although as many are listed", () => {
    const after = rememberImageConfigs(known, listed("base", "new"), read());
    expect([...after.imageConfigs.keys()]).toEqual(listed("base"));
  });

  test("say that an image has none if its status names none", () => {
    const after = rememberImageConfigs(
      known,
      listed("base", "app", "silent", "empty"),
      read(["silent", { chain: null, builtAt: null }], ["empty", config()]),
    );
    expect(after.layers).toEqual(known.layers);
    for (const id of ["silent", "empty"])
      expect(after.imageConfigs.get(imageId(id))?.chain).toBeNull();
  });

  test("lose layers with the last image that has them, and no others", () => {
    const more = rememberImageConfigs(
      known,
      listed("base", "app", "two", "silent"),
      read(["two", config("b", "b/a", "b/a/t")], ["silent", { chain: null, builtAt: null }]),
    );
    const without = rememberImageConfigs(more, listed("two", "silent"), read());
    // What is below the one that is left stays, whoever brought it.
    expect([...without.layers.keys()]).toEqual(["b", "b/a", "b/a/t"].map(chainId));
    const base = rememberImageConfigs(more, listed("base", "app"), read());
    expect([...base.layers.keys()]).toEqual(["b", "b/a"].map(chainId));
    expect([...rememberImageConfigs(more, listed("silent"), read()).layers]).toEqual([]);
  });

  test("contain a layer that two new images share only once", () => {
    const after = rememberImageConfigs(
      NOTHING,
      listed("one", "two"),
      read(["one", config("b", "b/1")], ["two", config("b", "b/2")]),
    );
    expect([...after.layers.values()]).toEqual([run(null, "b", "b/1"), run("b", "b/2")]);
  });
});

describe("the layers of a node", () => {
  const images = ["base", "app", "silent"].map((name) => anImage(name, { sizeBytes: 50n * MIB }));
  const [base, app, silent] = images.map(({ id }) => id);
  const remembered = () =>
    rememberImageConfigs(
      NOTHING,
      images.map(({ id }) => id),
      new Map([
        [base!, config("b")],
        [app!, config("b", "b/l", "b/l/a")],
        [silent!, { chain: null, builtAt: null }],
      ]),
    );

  test("has the images whose layers are known", () => {
    const layers = layersOf([...images], remembered());
    expect(images.map(({ id }) => layers.has(id))).toEqual([true, true, false]);
    expect(layers.depthOf(app!)).toBe(3);
  });

  test("is built once for the same list and records, and again when more was learned", () => {
    const memory = remembered();
    const layers = layersOf(images, memory);
    expect(layersOf(images, memory)).toBe(layers);
    expect(layersOf(images, { ...memory, imageConfigs: new Map(memory.imageConfigs) })).not.toBe(
      layers,
    );
    expect(layersOf([...images], memory)).not.toBe(layers);
  });
});
