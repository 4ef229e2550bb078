// The line of each key is found in YAML and JSON as people write it.

import { expect, test } from "bun:test";

import { keyLines } from "../../src/config/lines.ts";
import { nearest } from "../../src/config/nearest.ts";

const found = (text: string): readonly string[] =>
  keyLines(text).map(({ path, line }) => `${path}@${line}`);

test("keys of the outermost map and of the maps in it", () => {
  expect(found("a: 1\n# b: 2\nb:\n  c: 3\n  d:\n    e: 4\n  f: 5\ng: 6\n")).toEqual([
    "a@1",
    "b@3",
    "b.c@4",
    "b.d@5",
    "b.f@7",
    "g@8",
  ]);
});

test("keys of pretty JSON", () => {
  expect(found('{\n  "a": 1,\n  "b": {\n    "c.d": "5%"\n  },\n  "e": []\n}\n')).toEqual([
    "a@2",
    "b@3",
    "b.c.d@4",
    "e@6",
  ]);
});

test("items of lists are no keys of the map", () => {
  expect(found("a:\n- key: x\n  value: y\nb: 1\n")).toEqual(["a@1", "a.value@3", "b@4"]);
});

test("a line of a million characters costs nothing", () => {
  const start = performance.now();
  keyLines(`${" ".repeat(1_000_000)}a: 1\n${"x".repeat(1_000_000)}`);
  expect(performance.now() - start).toBeLessThan(500);
});

test.each([
  ["verbositiy", "verbosity"],
  ["maxImage", "maxImages"],
  ["imgaes", "images"],
  ["maximages", "maxImages"],
])("%s is near to %s", (text, name) => {
  expect(nearest(text, ["dryRun", "maxImages", "images", "verbosity"])).toBe(name);
});

test.each(["x", "somethingElse", "", "m".repeat(1_000_000)])("%.20s is near to nothing", (text) => {
  expect(nearest(text, ["dryRun", "maxImages", "verbosity"])).toBeNull();
});
