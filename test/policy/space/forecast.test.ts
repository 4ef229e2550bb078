// When a disk is full: what is foreseen from lives of a disk that are known, and what is not.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { DiskPoint } from "../../../src/model/reports.ts";
import { hours, type Instant, instantFromMs, minutes, plus } from "../../../src/model/time.ts";
import { forecastOf } from "../../../src/policy/space/forecast.ts";

const GIB = 2 ** 30;
const NOW = instantFromMs(Date.parse("2026-03-01T12:00:00Z"));
const CAPACITY = 100 * GIB;

interface Life {
  /** What is in use on the disk, this many hours before now. */
  readonly usedGib: (hoursAgo: number) => number;
  readonly hours?: number;
  readonly everyMinutes?: number;
}

const pointAt = (at: Instant, usedGib: number, change: Partial<DiskPoint> = {}): DiskPoint => ({
  at,
  device: "8:1",
  mountpoint: "/",
  capacityBytes: BigInt(CAPACITY),
  availableBytes: BigInt(Math.round(CAPACITY - usedGib * GIB)),
  freedBytes: 0n,
  ...change,
});

function pointsOf({ usedGib, hours: long = 24, everyMinutes = 5 }: Life): readonly DiskPoint[] {
  const count = Math.floor((long * 60) / everyMinutes) + 1;
  return Array.from({ length: count }, (_, index) => {
    const ago = (count - 1 - index) * everyMinutes;
    return pointAt(plus(NOW, minutes(-ago)), usedGib(ago / 60));
  });
}

function forecast(points: readonly DiskPoint[], highPercent: number | null = 85) {
  const last = points.at(-1) ?? pointAt(NOW, 50);
  return forecastOf({ points, filesystem: last, highPercent, now: NOW });
}

/** In hours, rounded, as a reader sees them; `null`: nothing is foreseen. */
function shown(points: readonly DiskPoint[], highPercent: number | null = 85) {
  const it = forecast(points, highPercent);
  const inHours = (span: bigint | null) =>
    span === null ? null : Math.round(Number(span) / 3.6e11) / 10;
  return (
    it && {
      rate: Math.round((Number(it.bytesPerHour) / GIB) * 100) / 100,
      over: inHours(it.span),
      high: inHours(it.untilHigh),
      full: inHours(it.untilFull),
    }
  );
}

const steady = (rate: number, now: number) => (ago: number) => now - rate * ago;

test.each([
  ["has a forecast of its threshold and of being full", 1, 75, 85, [2.9, 10, 25]],
  ["has one by the last hours where these reach to its threshold", 0.5, 75, 85, [2.9, 20, null]],
  ["has one by more than these where it is over it", 0.2, 90, 85, [5.9, 0, 50]],
  ["has none beyond ten times the measured span, but a rate", 0.01, 60, 85, [23.9, null, null]],
  ["without a threshold has the time until it is full", 1, 90, null, [2.9, null, 10]],
  ["with a threshold of 100 has that time too", 1, 90, 100, [2.9, null, 10]],
] as const)("with steady growth a disk %s", (_, rate, now, highPercent, [over, high, full]) => {
  const it = shown(pointsOf({ usedGib: steady(rate, now) }), highPercent);
  expect(it).toEqual({ rate, over, high, full });
});

describe("the least data for a forecast", () => {
  test.each([
    ["no point is too little", -1, 1, null],
    ["eleven points are too few", 10 / 6, 10, null],
    ["twelve points are enough", 11 / 6, 10, 1.8],
    ["59 minutes are too short", 59 / 60, 1, null],
    ["an hour is enough", 1, 1, 1],
  ])("%s", (_, hours_, everyMinutes, over) => {
    const points = pointsOf({ usedGib: steady(1, 75), hours: hours_, everyMinutes });
    expect(shown(points)?.over ?? null).toBe(over);
  });

  test("a quarter of the window without a point is not too long ago, and more is", () => {
    const until = (ago: bigint) =>
      shown(pointsOf({ usedGib: steady(1, 75) }).filter(({ at }) => at <= NOW - ago))?.over;
    expect(until(minutes(45))).toBe(2.2);
    expect(until(minutes(50))).toBeGreaterThan(3);
  });
});

test.each([
  ["stays as it is", () => 60],
  ["shrinks", steady(-1, 60)],
  ["grew once, by a burst", (ago: number) => (ago < 12 ? 70 : 60)],
  ["grows to what it had that day before", (ago: number) => (ago > 12 ? 75 : 75 - ago)],
  ["grew in the last half hour alone", (ago: number) => (ago < 0.5 ? 70 - 10 * ago : 65)],
])("without a clear trend there is no forecast for a disk that %s", (_, usedGib) => {
  expect(shown(pointsOf({ usedGib }))).toBeNull();
});

const NOISE = { minLength: 289, maxLength: 289 };

test("the present rate is not changed by noise and single wrong measurements", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -0.5, max: 0.5, noNaN: true }), NOISE),
      fc.array(fc.nat(288), { maxLength: 8 }),
      (noise, wrong) => {
        const points = pointsOf({
          usedGib: (ago) => 70 - 2 * ago + (noise[Math.round(ago * 12)] ?? 0),
        }).map((point, index) =>
          wrong.includes(index) ? { ...point, availableBytes: 0n } : point,
        );
        const filesystem = pointAt(NOW, 70);
        const foreseen = forecastOf({ points, filesystem, highPercent: 85, now: NOW });
        const rate = Number(foreseen?.bytesPerHour) / GIB;
        expect(rate).toBeGreaterThan(1.5);
        expect(rate).toBeLessThan(2.6);
      },
    ),
    { numRuns: 50 },
  );
});

describe("space that crigc frees", () => {
  /** Fills by `rate` an hour and is brought back by ten GiB whenever it is over 85. */
  function sawtooth(rate: number): readonly DiskPoint[] {
    let used = 76;
    return pointsOf({ usedGib: () => 0 }).map((point) => {
      used += rate / 12;
      const before = used;
      if (used >= 85) used -= 10;
      const freedBytes = BigInt(Math.round((before - used) * GIB));
      return { ...pointAt(point.at, before), freedBytes };
    });
  }

  test("does not lower the rate, which is what others write", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.5, max: 60, noNaN: true }), (rate) => {
        const foreseen = shown(sawtooth(rate));
        expect(Math.abs((foreseen?.rate ?? 0) - rate)).toBeLessThanOrEqual(0.02 + rate / 100);
      }),
      { numRuns: 50 },
    );
  });
});

describe("a broken series", () => {
  const rising = pointsOf({ usedGib: steady(1, 75) });

  test("a disk that was resized after the last point has none", () => {
    const filesystem = pointAt(NOW, 75, { capacityBytes: 2n ** 40n });
    expect(forecastOf({ points: rising, filesystem, highPercent: 85, now: NOW })).toBeNull();
  });

  test("starts again with another filesystem under the same device number", () => {
    const moved = rising.map((point, index) =>
      index < rising.length - 9 ? { ...point, mountpoint: "/elsewhere" } : point,
    );
    expect(shown(moved)).toBeNull();
  });

  test("excludes other filesystems", () => {
    const other = rising.map((point) => ({ ...point, device: "8:2", availableBytes: 5n }));
    const both = rising.flatMap((point, index) => [other[index] ?? point, point]);
    expect(shown(both)).toEqual(shown(rising));
  });

  test("starts again after a clock was set back, without points from the future", () => {
    const ahead = rising.map((point, index) =>
      index < 200 ? { ...point, at: plus(point.at, hours(24 * 365)) } : point,
    );
    expect(shown(ahead)).toMatchObject({ rate: 1 });
    expect(shown(ahead.slice(0, 200))).toBeNull();
    const late = rising.map((point, index) =>
      index < rising.length - 9 ? { ...point, at: plus(point.at, hours(2)) } : point,
    );
    expect(shown(late)).toBeNull();
  });

  test("is not caused by two passes with swapped points", () => {
    const swapped = rising.map((point, index) =>
      index === 280 ? (rising[281] ?? point) : index === 281 ? (rising[280] ?? point) : point,
    );
    expect(shown(swapped)).toMatchObject({ rate: 1 });
  });
});
