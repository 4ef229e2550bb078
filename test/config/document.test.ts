// Where each entry of a configuration document is written, as people write YAML and JSON, and as the hostile do.

import { expect, test } from "bun:test";

import { parseDocument } from "../../src/config/document.ts";
import { ours } from "./loading.ts";

const PATH = "/etc/crigc/crigc.yaml";
const linesIn = (text: string): readonly string[] =>
  parseDocument(PATH, text).entries.map(({ name, line }) => `${name}@${line}`);

test.each([
  ["block maps", ours("a: 1\n# b: 2\nb:\n  c: 3\ng: 6\n"), "a@3 b@5 g@7"],
  [
    "maps with names of the table",
    ours("logging:\n  # format: text\n  format: json\n  verbosity: 2\n"),
    "logging.format@5 logging.verbosity@6",
  ],
  [
    "JSON with tabs",
    '{\n\t"apiVersion": "crigc/v1",\n\t"kind": "CrigcConfiguration",\n\t"a": {"b": 1}\n}',
    "a@4",
  ],
  [
    "JSON on one line",
    '{"apiVersion":"crigc/v1","kind":"CrigcConfiguration","logging":{"format":"x\\"}"},"a":3}',
    "logging.format@1 a@1",
  ],
  [
    "quoted and explicit keys",
    ours("\"k\\u0065ep\": 1\n? a\n: 2\n'it''s': 3"),
    "keep@3 a@4 it's@6",
  ],
  ["texts with colons in them", ours("a: http://x:1/\nb: 12:30\nc: 'd: 1' # e: 2"), "a@3 b@4 c@5"],
  [
    "texts over several lines",
    ours('a: "x\n  y: z"\nb: x\n  y\nc: |\n  d: 1\n\n  e: 2\nf: >-\n  g: 3'),
    "a@3 b@5 c@7 f@11",
  ],
  ["a document with a BOM and CRLF", `\uFEFF${ours("a: 1\n").replaceAll("\n", "\r\n")}`, "a@3"],
  ["a file of comments", ours("# b: 1\n# it's\u2028c: 1\na: |\n  # x\n# y\nd: 1\n"), "a@5 d@8"],
  ["quotes with number signs in them", ours("a: 'x\n  # y'\nb: 1"), "a@3 b@5"],
  ["a document with its marks", `---\n${ours("a: 1\n")}...`, "a@4"],
])("the lines of %s are found", (_, text, lines) => {
  expect(linesIn(text).join(" ")).toBe(lines);
});
