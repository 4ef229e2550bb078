// Kubernetes quantities are read exactly and rounded up; sizes also take the B that people write.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { formatQuantity, parseQuantity, parseSize } from "../../src/config/value/quantity.ts";

describe("reading a quantity", () => {
  test.each([
    ["0", 0n],
    ["00Ki", 0n],
    ["1", 1n],
    ["+1", 1n],
    ["-1", -1n],
    ["-1.5", -2n],
    ["1Ki", 1024n],
    ["100Mi", 104_857_600n],
    ["1.5Gi", 1_610_612_736n],
    [".5Gi", 536_870_912n],
    ["1.Gi", 1_073_741_824n],
    ["1k", 1_000n],
    ["20G", 20_000_000_000n],
    ["1E", 10n ** 18n],
    ["1E5", 100_000n],
    ["12e6", 12_000_000n],
    ["1e+3", 1_000n],
    ["1500e-3", 2n],
    ["100m", 1n],
    ["1001m", 2n],
    ["1n", 1n],
    ["1e-10", 1n],
    ["1e-999999999", 1n],
    ["1.05Gi", 1_127_428_916n],
    ["9Ei", 2n ** 63n - 1n],
  ])("%s is %s", (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  test.each([
    "",
    "10%",
    "1K",
    "1ki",
    "1mi",
    "1KiB",
    "1e",
    "1i",
    ".5i",
    "aoeu",
    "1.1.M",
    "1+1.0M",
    "0.1mi",
    "-3.01e-",
    " 1",
    "1 ",
    "1,5",
    "0x10",
    "NaN",
    "10E",
    "1e30",
    "1e999999999",
  ])("%s is refused", (text) => {
    expect(parseQuantity(text)).toBeNull();
  });

  test("a text of a million digits is refused without being read", () => {
    expect(parseQuantity(`${"1".repeat(1_000_000)}x`)).toBeNull();
  });

  test("what is printed is no longer than the digits and reads back as the same amount", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 20n }),
        fc.constantFrom(1n, 1000n, 1024n, 10n ** 9n, 2n ** 30n),
        (count, unit) => {
          const text = formatQuantity(count * unit);
          expect(text.length).toBeLessThanOrEqual((count * unit).toString().length);
          expect(parseQuantity(text)).toBe(count * unit);
        },
      ),
    );
  });
});

describe("reading a size", () => {
  test.each([
    ["20GB", 20n * 10n ** 9n],
    ["20GiB", 20n * 2n ** 30n],
    ["20B", 20n],
    ["20Gi", 20n * 2n ** 30n],
  ])("%s is %s bytes", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each(["B", "20Bi", "20BB", "20 GB", "500m", "20u", "20n"])("%s is refused", (text) => {
    expect(parseSize(text)).toBeNull();
  });
});
