import { describe, expect, test } from "bun:test";

import { byId, mapFor, WideMap } from "../../src/model/large-maps.ts";

/** More than two of its maps hold. */
const MANY = 40_000;
const keys = Array.from({ length: MANY }, (_, index) => `key ${index}`);

function filled(): WideMap<string, number> {
  const map = new WideMap<string, number>();
  for (const [index, key] of keys.entries()) map.set(key, index);
  return map;
}

describe("a map of many entries", () => {
  test("has each entry once, in the order in which they came", () => {
    const map = filled();
    expect(map.size).toBe(MANY);
    expect([...map.keys()]).toEqual(keys);
    expect([...map.values()]).toEqual(keys.map((_, index) => index));
    expect([...map]).toEqual(keys.map((key, index) => [key, index]));
    const visited: number[] = [];
    map.forEach((value, key, whole) => {
      if (whole === map && map.get(key) === value) visited.push(value);
    });
    expect(visited).toHaveLength(MANY);
  });

  test("finds what it has, wherever it is, and nothing else", () => {
    const map = filled();
    expect(keys.every((key, index) => map.get(key) === index)).toBe(true);
    expect(map.has("key 39999")).toBe(true);
    expect(map.has("key 40000")).toBe(false);
    expect(map.get("key 40000")).toBeUndefined();
  });

  test("an entry that is set again keeps its place", () => {
    const map = filled();
    map.set("key 5", -1);
    map.set("key 20000", -2);
    map.set("key 39999", -3);
    expect(map.size).toBe(MANY);
    expect([map.get("key 5"), map.get("key 20000"), map.get("key 39999")]).toEqual([-1, -2, -3]);
    expect([...map.keys()]).toEqual(keys);
  });

  test("where few are, it is a plain map", () => {
    const few = new WideMap<string, number>();
    few.set("a", 1);
    expect(few.whole()).toEqual(new Map([["a", 1]]));
    expect(mapFor(16_384)).toBeInstanceOf(Map);
    expect(mapFor(16_385)).toBeInstanceOf(WideMap);
    const many = filled();
    expect(many.whole()).toBe(many);
  });

  test("of items with the same ID it has the last", () => {
    const items = [
      { id: "a", of: 1 },
      { id: "b", of: 2 },
      { id: "a", of: 3 },
    ];
    expect([...byId(items).values()].map(({ of }) => of)).toEqual([3, 2]);
  });
});
