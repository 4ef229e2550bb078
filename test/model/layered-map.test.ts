import { expect, test } from "bun:test";

import fc from "fast-check";

import { withEntry, withoutKeys } from "../../src/model/layered-map.ts";

type Step = readonly ["set", number, string] | readonly ["drop", readonly number[]];

const keys = fc.integer({ min: 0, max: 300 });
const steps = fc.array(
  fc.oneof(
    fc.tuple(fc.constant("set" as const), keys, fc.string()),
    fc.tuple(fc.constant("drop" as const), fc.array(keys, { maxLength: 3 })),
  ),
  { maxLength: 400 },
);

const applied = (map: ReadonlyMap<number, string>, step: Step): ReadonlyMap<number, string> =>
  step[0] === "set" ? withEntry(map, step[1], step[2]) : withoutKeys(map, step[1]);

function plain(map: ReadonlyMap<number, string>, step: Step): Map<number, string> {
  const copy = new Map(map);
  if (step[0] === "set") return copy.set(step[1], step[2]);
  for (const key of step[1]) copy.delete(key);
  return copy;
}

const sorted = (map: ReadonlyMap<number, string>) => [...map].toSorted(([a], [b]) => a - b);

test("a layered version says the same as a copy", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const first: ReadonlyMap<number, string> = new Map([
        [1, "one"],
        [2, "two"],
      ]);
      let layered = first;
      let copy = first;
      for (const step of all) {
        layered = applied(layered, step);
        copy = plain(copy, step);
        expect(layered.size).toBe(copy.size);
      }
      expect(sorted(layered)).toEqual(sorted(copy));
      expect([...layered.keys()].length).toBe([...layered.values()].length);
    }),
  );
});
