// Durations are read as Go reads them, quantities and percentages as Kubernetes does: a snapshot of every reading.

import { expect, test } from "bun:test";

import {
  formatDuration,
  parseDuration,
  parsePercentage,
  parseQuantity,
  parseSize,
} from "../../src/config/units.ts";
import { duration } from "../../src/model/time.ts";

/** Between bars, so that blanks count. */
const readings: readonly (readonly [string, (text: string) => unknown, string])[] = [
  [
    "durations, in ns",
    parseDuration,
    "-0|+5s|-5s|.5s|1.s|3m2h|1w1d12h|1.5d|1us1µs1μs|9007199254.740993ms|9223372036854775807ns",
  ],
  [
    "texts that are no duration",
    parseDuration,
    "|3|00|+|s|.|.s|30mins|1D|1mo|1 s|1s |1e3s|1h-1m|1..5s|9223372036854775808ns|1toString",
  ],
  [
    "quantities",
    parseQuantity,
    "00Ki|-1.5|1.5Gi|.5Gi|1.Gi|20G|1E|1E5|1500e-3|1001m|1n|1e-999999999|1.05Gi|7Ei",
  ],
  [
    "texts that are no quantity",
    parseQuantity,
    "|1K|1ki|1KiB|1e|1i|aoeu|1.1.M|1 |0x10|NaN|10E|8Ei|1e30|1e999999999",
  ],
  ["sizes, which may have a B", parseSize, "20GB|20GiB|20B|20Gi"],
  ["texts that are no size", parseSize, "B|20Bi|20BB|20 GB|500m|20u|20n"],
  ["percentages, as float32 shares", parsePercentage, "5.%|.5%|1e1%|5%%"],
  ["texts that are no percentage", parsePercentage, "%|0x10%|--1%|1 %|nan%|inf%"],
];

test.each(readings)("%s are read the same", (what, parse, texts) => {
  const read = texts.split("|").map((text) => [text, parse(text)] as const);
  expect(
    read.every(([, value]) => (value === null) === what.startsWith("texts that are no")),
  ).toBeTrue();
  expect(read.map(([text, value]) => `${text} → ${String(value)}`).join("\n")).toMatchSnapshot();
});

test.each([
  [0n, "0s"],
  [1_500n, "1.5us"],
  [100_000_000n, "100ms"],
  [86_400_000_000_000n, "24h"],
  [216_090_000_000_000n, "2d12h1m30s"],
  [3_600_500_000_000n, "1h0.5s"],
])("a duration of %p ns is printed as %s", (ns, text) => {
  expect(formatDuration(duration(ns))).toBe(text);
});

test.each([parseDuration, parseQuantity, parsePercentage])(
  "%p refuses a text of a million digits without reading it",
  (parse) => {
    for (const end of ["s", "x", "%"]) expect(parse(`${"1".repeat(1_000_000)}${end}`)).toBeNull();
  },
);
