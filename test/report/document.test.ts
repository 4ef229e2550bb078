// Documents: exact integers, escaped control characters, one envelope, and YAML that both versions read alike.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { type Duration, seconds } from "../../src/model/time.ts";
import {
  type Json,
  jsonOf,
  jsonPieces,
  printedJson,
  printedYaml,
  toJson,
  yamlPieces,
} from "../../src/report/document.ts";
import { planDocument } from "../../src/report/plan.ts";
import { at, candidate, image, imagePlan, NOW, runtime } from "./build.ts";

test("a Map in a document is refused rather than written as an empty object", () => {
  const value = { items: new Map() as never };
  expect(() => toJson(value)).toThrow("a Map or Set reached a JSON document");
});

test("the pieces of a document are its text", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const document = {
        lists: [value, { value, absent: undefined }],
        sizeBytes: 2n ** 60n,
      } as Json;
      expect([...jsonPieces(document)].join("")).toBe(printedJson(document));
      expect([...yamlPieces(document)].join("")).toBe(printedYaml(document));
    }),
  );
});

test("a document writes instants as RFC 3339 in UTC and durations in milliseconds, also in nested lists, and absent ones as null", () => {
  const item = { name: "observe", startedAt: at("2026-01-15T13:00:00.25+01:00"), took: seconds(2) };
  const value = {
    sizeBytes: 5n,
    until: null,
    age: null as Duration | null,
    remaining: seconds(0),
    items: [item],
  };
  expect(jsonOf(value)).toEqual({
    sizeBytes: 5n,
    until: null,
    ageMs: null,
    remainingMs: 0,
    items: [{ name: "observe", startedAt: "2026-01-15T12:00:00.25Z", tookMs: 2000 }],
  });
  expect(jsonOf(value, "sizeBytes")).toEqual({ sizeBytes: 5n });
});

test("a size of 64 bits is exact in a plan, and halves that were not requested are null", () => {
  const huge = candidate(1, { image: image(1, { sizeBytes: 18_446_744_073_709_551_615n }) });
  const plan = { images: imagePlan({ candidates: [huge] }), containers: null };
  const text = toJson(planDocument({ plan, snapshot: { runtime, observedAt: NOW } }));
  expect(text).toContain('"sizeBytes":18446744073709551615');
  expect(text).toEndWith('"containers":null}');
});

test("a document of nested lists and maps is indented like those of kubectl", () => {
  const nested = {
    kind: "Plan",
    absent: undefined,
    none: null,
    empty: [],
    nothing: { absent: undefined },
    items: [1n, 2n].map((bytes) => ({ bytes, tags: ["a", "b"], pairs: [[1, 2], []] })),
  };
  expect(printedYaml(nested)).toMatchSnapshot();
  expect(Bun.YAML.parse(printedYaml(nested))).toMatchObject({ items: [{ bytes: 1 }, {}] });
});

// A base-60 integer, a time, a boolean and numbers of YAML 1.1; the property below covers YAML 1.2.
test.each(["254:0", "2026-11-22T08:52:18.233Z", "No", "y", "off", "1_000", ".5"])(
  "the text %j is quoted in YAML",
  (value) => {
    expect(printedYaml({ value })).toStartWith(`value: "`);
  },
);

test("any text, key and integer is read back from YAML as it was", () => {
  const key = fc.string({ minLength: 1 }).filter((it) => it !== "__proto__");
  fc.assert(
    fc.property(key, fc.string({ unit: "binary" }), (name, value) => {
      const text = value.replaceAll("\u0000", "");
      expect(Bun.YAML.parse(printedYaml({ [name]: text, list: [text] }))).toEqual({
        [name]: text,
        list: [text],
      });
    }),
  );
  expect(printedYaml({ sizeBytes: 100_000_000_000_000_004n })).toBe(
    "sizeBytes: 100000000000000004\n",
  );
});

test("characters that mislead a terminal are escaped", () => {
  const printed = printedYaml({ name: "a\u202eb\u001b[31m" });
  expect(printed).toBe('name: "a\\u202eb\\e[31m"\n');
  expect(Bun.YAML.parse(printed)).toEqual({ name: "a\u202eb\u001b[31m" });
});
