// Amounts for people.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { duration, durationFromMs, seconds } from "../../src/model/time.ts";
import { humanBytes, humanDuration, usedPercent } from "../../src/report/words.ts";

test("sizes, spans and shares read the same", () => {
  const sizes = [0n, 1023n, 1024n, 1280n, 1792n, 1_048_575n, 1_048_576n, 524_288_000n, -2048n]
    .concat(10_737_418_240n, 1_099_511_627_776n, 5_629_499_534_213_120n)
    .map((bytes) => `${bytes}: ${humanBytes(bytes)}`);
  const small = [duration(0n), duration(500n), durationFromMs(40), durationFromMs(1850)];
  const large = [2, 59, 120, 150, 5400, 86_400, 88_200, 273_600, -150].map(seconds);
  const spans = [...small, ...large].map((span) => `${span} ns: ${humanDuration(span)}`);
  const disks = [
    [1000n, 600n],
    [1000n, 50n],
    [1000n, 159n],
    [1000n, 1000n],
    [0n, 0n],
    [10_737_418_240n, 536_870_912n],
  ] as const;
  const used = disks.map(([of, free]) => `${free} of ${of} free: ${usedPercent(of, free)} % used`);
  expect([...sizes, ...spans, ...used].join("\n")).toMatchSnapshot();
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
