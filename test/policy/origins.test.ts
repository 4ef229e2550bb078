import { describe, expect, test } from "bun:test";

import { chainId, type ImageId, imageId } from "../../src/model/ids.ts";
import type { ImageOrigin, LayerRun } from "../../src/model/ledger.ts";
import { layersOf, type Origins, rememberOrigins } from "../../src/policy/layers.ts";
import { anImage, MIB, NOW } from "../support/build/values.ts";

const NOTHING: Origins = { origins: new Map(), layers: new Map() };

const origin = (...chain: readonly string[]): ImageOrigin => ({
  chain: chain.map(chainId),
  builtAt: NOW,
});
const read = (...origins: readonly (readonly [string, ImageOrigin])[]) =>
  new Map<ImageId, ImageOrigin>(origins.map(([id, it]) => [imageId(id), it]));
const listed = (...ids: readonly string[]) => ids.map((id) => ({ id: imageId(id) }));
const run = (below: string | null, ...chain: readonly string[]): LayerRun => ({
  below: below === null ? null : chainId(below),
  chain: chain.map(chainId),
});

const known = rememberOrigins(
  NOTHING,
  listed("base", "app"),
  read(["base", origin("b")], ["app", origin("b", "b/a")]),
);

describe("the recorded layers", () => {
  test("do not grow by an image removed since it was read", () => {
    const after = rememberOrigins(known, listed("base", "app"), read(["gone", origin("g")]));
    expect(after.origins).toBe(known.origins);
  });

  test("drop an image that another one has replaced, although as many are listed", () => {
    const after = rememberOrigins(known, listed("base", "new"), read());
    expect([...after.origins.keys()]).toEqual(listed("base").map(({ id }) => id));
  });

  test("say that an image has none if its status names none", () => {
    const after = rememberOrigins(
      known,
      listed("base", "app", "silent", "empty"),
      read(["silent", { chain: null, builtAt: null }], ["empty", origin()]),
    );
    expect(after.layers).toEqual(known.layers);
    for (const id of ["silent", "empty"]) expect(after.origins.get(imageId(id))?.chain).toBeNull();
  });

  test("lose layers with the last image that has them, and no others", () => {
    const more = rememberOrigins(
      known,
      listed("base", "app", "two", "silent"),
      read(["two", origin("b", "b/a", "b/a/t")], ["silent", { chain: null, builtAt: null }]),
    );
    const without = rememberOrigins(more, listed("two", "silent"), read());
    // What is below the one that is left stays, whoever brought it.
    expect([...without.layers.keys()]).toEqual(["b", "b/a", "b/a/t"].map(chainId));
    const base = rememberOrigins(more, listed("base", "app"), read());
    expect([...base.layers.keys()]).toEqual(["b", "b/a"].map(chainId));
    expect([...rememberOrigins(more, listed("silent"), read()).layers]).toEqual([]);
  });

  test("contain a layer that two new images share only once", () => {
    const after = rememberOrigins(
      NOTHING,
      listed("one", "two"),
      read(["one", origin("b", "b/1")], ["two", origin("b", "b/2")]),
    );
    expect([...after.layers.values()]).toEqual([run(null, "b", "b/1"), run("b", "b/2")]);
  });
});

describe("the layers of a node", () => {
  const images = ["base", "app", "silent"].map((name) => anImage(name, { sizeBytes: 50n * MIB }));
  const [base, app, silent] = images.map(({ id }) => id);
  const remembered = () =>
    rememberOrigins(
      NOTHING,
      images,
      new Map([
        [base!, origin("b")],
        [app!, origin("b", "b/l", "b/l/a")],
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
    expect(layersOf(images, { ...memory, origins: new Map(memory.origins) })).not.toBe(layers);
    expect(layersOf([...images], memory)).not.toBe(layers);
  });
});
