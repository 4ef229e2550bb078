import { expect, test } from "bun:test";

import fc from "fast-check";

import { chainId, type ImageId, imageId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageOrigin } from "../../src/model/ledger.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { forestOf, type Origins, rememberOrigins } from "../../src/policy/layer/origins.ts";

/** Images by the layers of a small pool, listed or not in each step of a history. */
const node = fc.record({
  layers: fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 6 }), {
    minLength: 1,
    maxLength: 10,
  }),
  steps: fc.array(fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }), { maxLength: 8 }),
});

const originOf = (layers: readonly number[]): ImageOrigin => ({
  chain:
    layers.length === 0
      ? null
      : layers.map((_, index) => chainId(layers.slice(0, index + 1).join("/"))),
  builtAt: null,
});

const image = (id: ImageId): Image => ({
  id,
  repoTags: [],
  repoDigests: [],
  sizeBytes: 1_000_000n,
  pinned: false,
});

test("after any history of images that come and go, the chain of each listed image is whole and no run without a needed layer is kept", () => {
  fc.assert(
    fc.property(node, ({ layers, steps }) => {
      let known: Origins = emptyLedger;
      for (const step of steps) {
        const listed = layers.flatMap((_, index) =>
          step[index] === true ? [image(imageId(`i${index}`))] : [],
        );
        const indexOf = (id: ImageId): number => Number(id.slice(1));
        const read = new Map(
          listed
            .filter(({ id }) => !known.origins.has(id))
            .map(({ id }) => [id, originOf(layers[indexOf(id)] ?? [])]),
        );
        const next = rememberOrigins(known, listed, read);
        expect([...next.origins.keys()].toSorted()).toEqual(listed.map(({ id }) => id).toSorted());
        const forest = forestOf(listed, next);
        const needed = new Set<string>();
        for (const { id } of listed) {
          const { chain } = originOf(layers[indexOf(id)] ?? []);
          expect(forest.chainOf(id)?.map((layer) => layer.chain) ?? null).toEqual(
            chain === null ? null : [...chain],
          );
          for (const one of chain ?? []) needed.add(one);
        }
        const kept = [...next.layers.values()].flatMap((run) => run.chain);
        expect(new Set(kept).size).toBe(kept.length);
        for (const one of needed) expect(kept).toContain(chainId(one));
        // A run goes as a whole: what is kept beyond the need lies in a run that is needed.
        for (const run of next.layers.values())
          expect(run.chain.some((one) => needed.has(one))).toBe(true);
        const again = rememberOrigins(next, listed, read);
        expect(again.origins).toBe(next.origins);
        expect(again.layers).toBe(next.layers);
        known = next;
      }
    }),
    { numRuns: 300 },
  );
});
