// Amounts for people.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { duration, durationFromMs, hours, minutes, seconds } from "../../src/model/time.ts";
import { counted, humanBytes, humanDuration, usedPercent } from "../../src/report/bytes.ts";

test.each([
  [0n, "0 B"],
  [1023n, "1023 B"],
  [1024n, "1.0 KiB"],
  [1280n, "1.2 KiB"],
  [1792n, "1.8 KiB"],
  [1_048_575n, "1024.0 KiB"],
  [1_048_576n, "1.0 MiB"],
  [524_288_000n, "500.0 MiB"],
  [10_737_418_240n, "10.0 GiB"],
  [1_099_511_627_776n, "1.0 TiB"],
  [5_629_499_534_213_120n, "5120.0 TiB"],
  [-2048n, "-2.0 KiB"],
])("%p bytes are %s", (bytes, text) => {
  expect(humanBytes(bytes)).toBe(text);
});

test("bytes are rounded to the nearest tenth, and ties to the even one", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1024n, max: (1n << 20n) - 1n }), (bytes) => {
      const [whole = "", tenth = ""] = (humanBytes(bytes).split(" ")[0] ?? "").split(".");
      const shown = BigInt(whole) * 10n + BigInt(tenth);
      const distance = shown * 1024n - bytes * 10n;
      const size = distance < 0n ? -distance : distance;
      expect(size <= 512n).toBe(true);
      if (size === 512n) expect(shown % 2n).toBe(0n);
    }),
  );
});

test.each([
  [duration(0n), "0s"],
  [duration(500n), "<1ms"],
  [durationFromMs(40), "40ms"],
  [durationFromMs(1850), "1.8s"],
  [seconds(2), "2s"],
  [seconds(59), "59s"],
  [seconds(150), "2m30s"],
  [minutes(2), "2m"],
  [minutes(90), "1h30m"],
  [hours(24), "1d"],
  [hours(76), "3d4h"],
  [minutes(24 * 60 + 30), "1d"],
  [seconds(-150), "-2m30s"],
])("a span of %p ns reads %s", (span, text) => {
  expect(humanDuration(span)).toBe(text);
});

test.each([
  [1000n, 600n, 40],
  [1000n, 50n, 95],
  [10_737_418_240n, 536_870_912n, 95],
  [1000n, 159n, 85],
  [1000n, 1000n, 0],
  [0n, 0n, 100],
])("a disk of %p bytes with %p available is %p percent used", (capacity, available, percent) => {
  expect(usedPercent(capacity, available)).toBe(percent);
});

test("a count of one is in the singular, every other in the plural", () => {
  expect([counted(0, "image"), counted(1, "image"), counted(2n, "entry", "entries")]).toEqual([
    "0 images",
    "1 image",
    "2 entries",
  ]);
});
