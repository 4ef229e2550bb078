// The line of each key is found in YAML and JSON as people write it, and as the hostile do.

import { expect, test } from "bun:test";

import { keysIn } from "../../src/config/source/lines.ts";
import { nearest } from "../../src/config/source/nearest.ts";

const found = (text: string): readonly string[] =>
  keysIn(text).found.map(({ path, line }) => `${path}@${line}`);

test.each([
  [
    "block maps",
    "a: 1\n# b: 2\nb:\n  c: 3\n  d:\n    e: 4\n  f: 5\ng: 6\n",
    "a@1 b@3 b.c@4 b.d@5 b.d.e@6 b.f@7 g@8",
  ],
  [
    "pretty JSON",
    '{\n  "a": 1,\n  "b": {\n    "c.d": "5%"\n  },\n  "e": []\n}\n',
    "a@2 b@3 b.c.d@4 e@6",
  ],
  [
    "JSON on one line",
    '{"a":"x\\"}","b":{"c":[1,{"d":1}],"c":2},"a":3}',
    "a@1 b@1 b.c@1 b.c[2].d@1 b.c@1 a@1",
  ],
  ["flow maps in YAML", "a: {b: 1,c: 2, d}\ne: [x, {y: 1}]", "a@1 a.b@1 a.c@1 a.d@1 e@2 e[2].y@2"],
  [
    "lists of maps",
    "a:\n- key: x\n  value: y\n- key: z\nb: 1\n",
    "a@1 a[1].key@2 a[1].value@3 a[2].key@4 b@5",
  ],
  ["quoted keys", "\"k\\u0065ep\": 1\n'it''s': 2", "keep@1 it's@2"],
  ["keys apart from their colon", 'a : 1\n"b"\t: 2', "a@1 b@2"],
  ["texts with colons in them", "a: http://x:1/\nb: 12:30\nc: 'd: 1' # e: 2", "a@1 b@2 c@3"],
  [
    "texts over several lines",
    'a: "x\n  y: z"\nb: x\n  y\nc: |\n  d: 1\n\n  e: 2\nf: >-\n  g: 3',
    "a@1 b@3 c@5 f@9",
  ],
  ["a document with its marks", "--- \n%a\na: 1\n...", "a@3"],
])("keys of %s are found", (_, text, keys) => {
  expect(found(text).join(" ")).toBe(keys);
});

test.each([
  ["? a\n: 1", "an explicit key (?)"],
  ["a: &x {b: 1}", "an anchor or alias (& or *)"],
  ["a: [*x]", "an anchor or alias (& or *)"],
  ["<<: {a: 1}", "a merge key (<<)"],
  ["{<<: {a: 1}}", "a merge key (<<)"],
  ["a: !!set {b}", "a tag (!)"],
])("the notation %j is refused", (text, what) => {
  expect(keysIn(text).refused.map((it) => it.what)).toContain(what);
});

test.each(["a: 'x & y'", "a: x*y", "a: b?", "keep: ['**/app', \"*\"]", "a: it! # &b"])(
  "the notation %j is accepted",
  (text) => {
    expect(keysIn(text).refused).toEqual([]);
  },
);

test("a line of a million characters takes no time", () => {
  const start = performance.now();
  keysIn(`${" ".repeat(1_000_000)}a: 1\n${"x".repeat(1_000_000)}`);
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
