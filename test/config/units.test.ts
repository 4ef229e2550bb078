// Durations are read as Go reads them, quantities and percentages as Kubernetes does.

import { describe, expect, test } from "bun:test";

import {
  formatDuration,
  parseDuration,
  parsePercentage,
  parseQuantity,
  parseSize,
} from "../../src/config/units.ts";
import { duration } from "../../src/model/time.ts";

const words = (text: string): readonly string[] => text.split(/,\s*/);

describe("a duration", () => {
  test.each([
    ["-0", 0n],
    ["+5s", 5_000_000_000n],
    ["-5s", -5_000_000_000n],
    [".5s", 500_000_000n],
    ["1.s", 1_000_000_000n],
    ["3m2h", 7_380_000_000_000n],
    ["1w1d12h", 734_400_000_000_000n],
    ["1.5d", 129_600_000_000_000n],
    ["1us1µs1μs", 3_000n],
    ["9007199254.740993ms", 9_007_199_254_740_993n],
    ["9223372036854775807ns", 2n ** 63n - 1n],
  ])("%s is %s ns", (text, ns) => {
    expect(parseDuration(text)).toBe(duration(ns));
  });

  test.each(
    words(",3,00,+,s,.,.s,30mins,1D,1mo,1 s,1s ,1e3s,1h-1m,1..5s,9223372036854775808ns,1toString"),
  )("%p is refused", (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  test.each([
    [0n, "0s"],
    [1_500n, "1.5us"],
    [100_000_000n, "100ms"],
    [86_400_000_000_000n, "24h"],
    [216_090_000_000_000n, "2d12h1m30s"],
    [3_600_500_000_000n, "1h0.5s"],
  ])("%s ns is printed as %s", (ns, text) => {
    expect(formatDuration(duration(ns))).toBe(text);
  });
});

describe("a quantity", () => {
  test.each([
    ["00Ki", 0n],
    ["-1.5", -2n],
    ["1.5Gi", 1_610_612_736n],
    [".5Gi", 536_870_912n],
    ["1.Gi", 1_073_741_824n],
    ["20G", 20_000_000_000n],
    ["1E", 10n ** 18n],
    ["1E5", 100_000n],
    ["1500e-3", 2n],
    ["1001m", 2n],
    ["1n", 1n],
    ["1e-999999999", 1n],
    ["1.05Gi", 1_127_428_916n],
    ["9Ei", 2n ** 63n - 1n],
  ])("%s is %s", (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  test.each(words(",1K,1ki,1KiB,1e,1i,aoeu,1.1.M,1 ,0x10,NaN,10E,1e30,1e999999999"))(
    "%p is refused",
    (text) => {
      expect(parseQuantity(text)).toBeNull();
    },
  );
});

test("a size is a quantity, also with a B", () => {
  expect(words("20GB,20GiB,20B,20Gi").map(parseSize)).toEqual([
    20n * 10n ** 9n,
    20n * 2n ** 30n,
    20n,
    20n * 2n ** 30n,
  ]);
});

test.each(words("B,20Bi,20BB,20 GB,500m,20u,20n"))("%p is not a size", (text) => {
  expect(parseSize(text)).toBeNull();
});

test.each([
  ["5.%", 5],
  [".5%", 0.5],
  ["1e1%", 10],
  ["5%%", 5],
])("the percentage %s is a float32 share", (text, value) => {
  expect(parsePercentage(text)).toBe(Math.fround(Math.fround(value) / 100));
});

test.each(words("%,0x10%,--1%,1 %,nan%,inf%"))("%p is not a percentage", (text) => {
  expect(parsePercentage(text)).toBeNull();
});

test.each([parseDuration, parseQuantity, parsePercentage])(
  "%p refuses a text of a million digits without reading it",
  (parse) => {
    for (const end of ["s", "x", "%"]) expect(parse(`${"1".repeat(1_000_000)}${end}`)).toBeNull();
  },
);
