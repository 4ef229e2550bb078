// What a terminal is sent.

import { expect, test } from "bun:test";

import { clean, column, screenOf, tableLines } from "../../src/report/terminal.ts";
import { plainScreen, terminal } from "./build.ts";

test("a screen has the width and colours of its terminal", () => {
  const terminals: Readonly<Record<string, Partial<Parameters<typeof screenOf>[0]>>> = {
    "a terminal": {},
    NO_COLOR: { environment: { NO_COLOR: "1" } },
    "an empty NO_COLOR": { environment: { NO_COLOR: "" } },
    "a dumb terminal": { environment: { TERM: "dumb" } },
    "a pipe": { isTerminal: false },
    "a terminal of unknown width": { columns: undefined },
    "a terminal that is too narrow": { columns: 3 },
  };
  const found = Object.entries(terminals).map(([name, change]) => {
    const facts = { isTerminal: true, columns: 120, environment: {}, ...change };
    return `${name}: ${JSON.stringify(screenOf(facts))}`;
  });
  expect(found.join("\n")).toMatchSnapshot();
});

test.each([
  ["escape sequences", "a\u001b[2Jb", "a[2Jb"],
  ["C1 controls", "a\u009b31mb", "a31mb"],
  ["line breaks", "a\r\nb\tc", "a b c"],
  ["reversal of the reading direction", "a\u202eb\u2066c", "abc"],
  ["characters without width", "a\u200bb\ufeff", "ab"],
  ["nothing of other scripts", "größe 日本 é", "größe 日本 é"],
])("text of the runtime loses %s", (_name, text, cleaned) => {
  expect(clean(text)).toBe(cleaned);
});

type Row = readonly [string, string];
const columns = [
  column("IMAGE", ([name]: Row) => name),
  column("SIZE", ([, size]: Row) => size, { align: "right" }),
];

test("the columns of a table are aligned under their titles and not cut, however wide the terminal", () => {
  const rows: readonly Row[] = [
    ["a", "1 B"],
    ["x".repeat(500), "100 B"],
  ];
  const [blank, long] = [" ".repeat(495), "x".repeat(500)];
  const lines = [`IMAGE${blank}   SIZE`, `a    ${blank}    1 B`, `${long}  100 B`];
  for (const screen of [plainScreen, { ...terminal, width: 40 }])
    expect(tableLines(columns, rows, screen)).toEqual(lines);
});
