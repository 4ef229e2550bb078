import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { ImageCandidate, KeptImage } from "../../../src/model/plan.ts";
import type { ImageTrigger } from "../../../src/model/reason.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import {
  childStillThere,
  layersCount,
  nameOf,
  orderByLayers,
  withListed,
} from "../../../src/policy/layer/layer-order.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import { forestOf } from "../../support/build/layers.ts";
import {
  aCandidate,
  anImage,
  aRecord,
  defaultImageLimits,
  MIB,
} from "../../support/build/values.ts";

const SPACE: readonly ImageTrigger[] = [{ kind: "space" }];
const AGE: readonly ImageTrigger[] = [{ kind: "age" }];

const base = anImage("base", { sizeBytes: 20n * MIB });
const child = anImage("child", { sizeBytes: 30n * MIB });
const other = anImage("other", { sizeBytes: 50n * MIB });
const twin = anImage("twin", { sizeBytes: 50n * MIB });
/** Of unknown layers. */
const lone = anImage("lone");

const forest = forestOf([base, "b"], [child, "b/c"]);

const going = (image: Image, triggers = SPACE): ImageCandidate =>
  aCandidate("x", { image, triggers });
const pinned = (image: Image): KeptImage => ({
  image,
  record: aRecord(),
  reason: { kind: "pinned" },
  tried: ["pinned"],
});
const ordered = (
  candidates: readonly ImageCandidate[],
  { of = forest, kept = [] }: { of?: LayerForest; kept?: readonly KeptImage[] } = {},
) =>
  orderByLayers({ candidates, kept }, { forest: of, gain: { typical: null, most: 5000n } }, SPACE);
const idsOf = (images: readonly { readonly image: Image }[]) => images.map(({ image }) => image.id);

describe("the order of removal", () => {
  test("puts a base after its child, says what each frees then, and that the base follows the child", () => {
    const { candidates, kept } = ordered([going(base), going(child)]);
    expect(idsOf(candidates)).toEqual([child.id, base.id]);
    expect(kept).toEqual([]);
    expect(candidates[0]).toMatchObject({
      chain: chainId("b/c"),
      unscaled: { estimateBytes: 10n * MIB },
      tried: ["in-use", "shares-all-layers"],
    });
    expect(candidates[0]).not.toHaveProperty("follows");
    expect(candidates[1]).toMatchObject({
      chain: chainId("b"),
      unscaled: { estimateBytes: 20n * MIB },
      follows: [child.id],
    });
  });

  test("keeps the order of images with the same layers, next to each other", () => {
    const of = forestOf([other, "b/o"], [twin, "b/o"], [child, "b/c"]);
    const { candidates } = ordered([going(twin), going(child), going(other)], { of });
    expect(idsOf(candidates)).toEqual([child.id, twin.id, other.id]);
    expect(candidates.map(({ follows }) => follows)).toEqual([undefined, undefined, [twin.id]]);
  });

  test("removes an aged image that waits for a child for the targets instead, with all after it", () => {
    const aged = [going(lone, AGE), going(base, [...AGE, ...SPACE])];
    const { candidates } = ordered([...aged, going(child)]);
    expect(candidates.map(({ image, triggers }) => [image.id, triggers])).toEqual([
      [lone.id, AGE],
      [child.id, SPACE],
      [base.id, SPACE],
    ]);
    const alone = ordered([...aged.slice(1), going(child)]).candidates;
    expect(alone.map(({ triggers }) => triggers)).toEqual([SPACE, SPACE]);
  });
});

describe("the sharers of a candidate", () => {
  const known = (of: LayerForest) =>
    ordered([going(child)], { of }).candidates.map(({ sharersKnown }) => sharersKnown);
  const withOthers = (others: boolean): LayerForest =>
    new LayerForest(
      [{ id: child.id, sizeBytes: child.sizeBytes, chain: chainId("b") }],
      new Map([[chainId("b"), null]]),
      others,
    );

  test("are known only if the layers of every image on the node are", () => {
    expect(known(withOthers(false))).toEqual([true]);
    expect(known(withOthers(true))).toEqual([false]);
    const broken = [
      { ...child, chain: chainId("b/c") },
      { ...other, chain: chainId("missing/o") },
    ];
    const parents = new Map([
      [chainId("b"), null],
      [chainId("b/c"), chainId("b")],
    ]);
    expect(known(new LayerForest(broken, parents))).toEqual([false]);
  });

  test("are unknown at its turn if an image came after the plan", () => {
    const planned = aCandidate("child", { sharersKnown: true });
    const origins = new Map([[child.id, { chain: null, builtAt: null }]]);
    expect(withListed(planned, [child], { origins })).toBe(planned);
    expect(withListed(planned, [child, other], { origins }).sharersKnown).toBeFalse();
  });
});

describe("a base whose child is kept", () => {
  test("is kept, and names the child", () => {
    const { candidates, kept } = ordered([going(base)], { kept: [pinned(child)] });
    expect(candidates).toEqual([]);
    expect(kept).toEqual([
      pinned(child),
      expect.objectContaining({
        image: base,
        reason: {
          kind: "shares-all-layers",
          images: [{ id: child.id, name: "registry.example/child:v1" }],
        },
        tried: ["in-use", "shares-all-layers"],
      }),
    ]);
  });

  test("goes if it is too old, before what goes for a target", () => {
    const aged = [going(lone, AGE), going(base, [...AGE, ...SPACE]), going(other)];
    const { candidates, kept } = ordered(aged, { kept: [pinned(child)] });
    expect(candidates.map(({ image, triggers }) => [image.id, triggers])).toEqual([
      [lone.id, AGE],
      [base.id, [...AGE, ...SPACE]],
      [other.id, SPACE],
    ]);
    expect(kept).toEqual([pinned(child)]);
  });

  test("names only children that are kept", () => {
    const of = forestOf([base, "b"], [other, "b/o"], [child, "b/c"], [twin, "b/c"]);
    const { kept } = ordered([going(base), going(other), going(twin)], {
      of,
      kept: [pinned(child)],
    });
    expect(kept.slice(1).map(({ reason }) => reason)).toMatchObject([
      { images: [{ id: child.id }, { id: twin.id }] },
      { images: [{ id: child.id }] },
    ]);
  });

  test("names a child by its ID if no name is known", () => {
    const [plain] = ordered([going(base)]).kept;
    expect(plain?.reason).toMatchObject({ images: [{ id: child.id, name: child.id }] });
  });
});

test("during a pass a base image is kept while a child planned before it still exists, and no longer", () => {
  const following = aCandidate("base", { follows: [child.id] });
  const both = [base, child];
  expect(childStillThere(following, new Set(), both)).toEqual({
    kind: "shares-all-layers",
    images: [{ id: child.id, name: "registry.example/child:v1" }],
  });
  expect(childStillThere(following, new Set([child.id]), both)).toBeNull();
  expect(childStillThere(following, new Set(), [base])).toBeNull();
  expect(childStillThere(aCandidate("base"), new Set(), both)).toBeNull();
});

test("an image is named by its first tag, else its first digest, else its ID", () => {
  expect(nameOf(anImage("a", { repoTags: ["b:1", "a:1"], repoDigests: ["a@d"] }))).toBe("a:1");
  expect(nameOf(anImage("a", { repoTags: [], repoDigests: ["b@d", "a@d"] }))).toBe("a@d");
  expect(nameOf(anImage("a", { repoTags: [] }))).toBe(anImage("a").id);
});

test("layers matter if a pass measures freed space, and not if it removes all", () => {
  const counts = (change = {}) =>
    layersCount({ ...defaultImageLimits, ...change }, { kind: "periodic" });
  expect(counts()).toBeTrue();
  expect(counts({ compat: "kubelet" })).toBeFalse();
  expect(counts({ accounting: "reported" })).toBeFalse();
  expect(layersCount(defaultImageLimits, { kind: "all-unused" })).toBeFalse();
});
