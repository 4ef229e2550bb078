import { expect, test } from "bun:test";

import { byObject, byParts, sameOr } from "../../src/policy/by-object.ts";

test.each(["list", "known", "counts"])(
  "a value derived from several objects is memoised, and derived again if %p changed",
  (part) => {
    let made = 0;
    const make = byParts(
      (of: { list: readonly string[]; known: ReadonlySet<string>; counts: boolean }) => {
        made += 1;
        return { of };
      },
    );
    const of = { list: ["a"], known: new Set(["a"]), counts: false };
    const first = make(of);
    expect(make({ ...of })).toBe(first);
    const others = { list: ["a"], known: new Set(["a"]), counts: true };
    const other = { ...of, [part]: Reflect.get(others, part) };
    expect(make(other)).toEqual({ of: other });
    expect(made).toBe(2);
  },
);

test("a value derived from an object is memoised", () => {
  let made = 0;
  const make = byObject<object, number>(() => (made += 1));
  const of = {};
  expect([make(of), make(of), make({})]).toEqual([1, 1, 2]);
});

test("entries with the same values are the same map, and others are new", () => {
  const before = new Map([["a", 1]]);
  expect(sameOr(before, new Map(before))).toBe(before);
  expect(sameOr(before, new Map([["a", 2]])).get("a")).toBe(2);
  expect(sameOr<string, number>(before, new Map()).size).toBe(0);
});
