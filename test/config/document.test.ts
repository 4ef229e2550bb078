// Where each entry of a configuration document is written, as people write YAML and JSON, and as the hostile do.

import { expect, test } from "bun:test";

import { parseDocument } from "../../src/config/document.ts";
import { ours } from "./loading.ts";

const PATH = "/etc/crigc/crigc.yaml";
const linesIn = (text: string): readonly string[] =>
  parseDocument(PATH, text).entries.map(({ name, line }) => `${name}@${line}`);

test("the lines of entries are found, however people write YAML and JSON", () => {
  const head = '"apiVersion":"crigc/v1","kind":"CrigcConfiguration"';
  const texts = [
    ours("a: 1\n# b: 2\nb:\n  c: 3\ng: 6\n"),
    // Names of the table.
    ours("logging:\n  # format: text\n  format: json\n  verbosity: 2\n"),
    '{\n\t"apiVersion": "crigc/v1",\n\t"kind": "CrigcConfiguration",\n\t"a": {"b": 1}\n}',
    `{${head},"logging":{"format":"x\\"}"},"a":3}`,
    ours("\"k\\u0065ep\": 1\n? a\n: 2\n'it''s': 3"),
    // Colons, line ends and number signs in texts.
    ours("a: http://x:1/\nb: 12:30\nc: 'd: 1' # e: 2"),
    ours('a: "x\n  y: z"\nb: x\n  y\nc: |\n  d: 1\n\n  e: 2\nf: >-\n  g: 3'),
    `\uFEFF${ours("a: 1\n").replaceAll("\n", "\r\n")}`,
    ours("# b: 1\n# it's\u2028c: 1\na: |\n  # x\n# y\nd: 1\n"),
    ours("a: 'x\n  # y'\nb: 1"),
    `---\n${ours("a: 1\n")}...`,
  ];
  const found = texts.map((text) => `${text}\n=> ${linesIn(text).join(" ")}`);
  expect(found.join("\n\n")).toMatchSnapshot();
});
