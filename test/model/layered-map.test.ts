import { expect, test } from "bun:test";

import * as fc from "fast-check";

import { changedKeys, withEntry, withoutKey } from "../../src/model/large-maps.ts";

const key = fc.integer({ min: 0, max: 40 });
const steps = fc.array(
  fc.record({ key, value: fc.option(fc.integer({ min: 1, max: 9 }), { nil: null }) }),
  { maxLength: 400 },
);

test("a layered map equals a copied map at every step, and lists the keys that differ between two versions", () => {
  fc.assert(
    fc.property(fc.array(key), steps, (first, changes) => {
      const start: ReadonlyMap<number, number> = new Map(first.map((it) => [it, 1]));
      let layered = start;
      const plain = new Map(start);
      for (const change of changes) {
        if (change.value === null) plain.delete(change.key);
        else plain.set(change.key, change.value);
        layered =
          change.value === null
            ? withoutKey(layered, change.key)
            : withEntry(layered, change.key, change.value);
        expect(layered.size).toBe(plain.size);
        expect(layered.get(change.key)).toBe(plain.get(change.key));
        expect(layered.has(change.key)).toBe(plain.has(change.key));
      }
      const sorted = (map: ReadonlyMap<number, number>) => [...map].toSorted(([a], [b]) => a - b);
      expect(sorted(layered)).toEqual(sorted(plain));
      const keys = (map: ReadonlyMap<number, number>) => new Set(map.keys());
      expect(keys(layered)).toEqual(keys(plain));
      expect([...layered.values()]).toEqual([...layered].map(([, value]) => value));
      const differing = [...new Set([...start.keys(), ...plain.keys()])].filter(
        (it) => start.get(it) !== plain.get(it),
      );
      const told = changedKeys(layered, start);
      if (told !== null) expect(new Set(told).isSupersetOf(new Set(differing))).toBeTrue();
    }),
  );
});

test("a layered map without one entry shares its base with the original", () => {
  const map = new Map(Array.from({ length: 1_000 }, (_, index) => [index, index]));
  const without = withoutKey(map, 7);
  expect([...(changedKeys(without, map) ?? [])]).toEqual([7]);
  expect(withoutKey(without, 7)).toBe(without);
  // However much went before.
  const next = withoutKey(withEntry(withoutKey(without, 8), 9, 0), 10);
  expect([...(changedKeys(withoutKey(next, 11), next) ?? [])]).toEqual([11]);
});
