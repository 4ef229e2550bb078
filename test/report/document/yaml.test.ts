// YAML documents, as parsers of both versions of YAML read them.

import { expect, test } from "bun:test";

import { lazily, printedYaml } from "../../../src/report/document.ts";

test("a document of nested lists and maps is indented like those of kubectl", () => {
  const document = {
    kind: "Plan",
    absent: undefined,
    none: null,
    empty: [],
    nothing: { absent: undefined },
    items: lazily([1n, 2n], (bytes) => ({ bytes, tags: ["a", "b"], pairs: [[1, 2], []] })),
  };
  expect(printedYaml(document)).toBe(`kind: Plan
none: null
empty: []
nothing: {}
items:
  - bytes: 1
    tags:
      - a
      - b
    pairs:
      - - 1
        - 2
      - []
  - bytes: 2
    tags:
      - a
      - b
    pairs:
      - - 1
        - 2
      - []
`);
  expect(Bun.YAML.parse(printedYaml(document))).toMatchObject({ items: [{ bytes: 1 }, {}] });
});

test("integers beyond 2^53 keep every digit", () => {
  expect(printedYaml({ sizeBytes: 100_000_000_000_000_004n })).toBe(
    "sizeBytes: 100000000000000004\n",
  );
});

test.each([
  // A base-60 integer, a time, booleans, numbers and nulls of YAML 1.1.
  "254:0",
  "2026-11-22T08:52:18.233Z",
  "No",
  "y",
  "off",
  "0x10",
  "1e3",
  "1_000",
  ".5",
  "~",
  "NULL",
  "",
  " a",
  "a: b",
  "a #b",
  "- a",
  "!tag",
  "*alias",
  "@at",
  "%10",
  "a\nb",
  'a"b\\c',
  "=",
  "<<",
])("the text %j is quoted, and reads back as the same text", (value) => {
  const printed = printedYaml({ value, list: [value] });
  expect(printed).toStartWith(`value: "`);
  expect(Bun.YAML.parse(printed)).toEqual({ value, list: [value] });
});

test("characters that mislead a terminal are escaped", () => {
  const printed = printedYaml({ name: "a\u202eb\u001b[31m" });
  expect(printed).toBe('name: "a\\u202eb\\u001b[31m"\n');
  expect(Bun.YAML.parse(printed)).toEqual({ name: "a\u202eb\u001b[31m" });
});

test("names that need no quotes have none", () => {
  expect(printedYaml({ "nodefs.available": "all-unused" })).toBe("nodefs.available: all-unused\n");
});
