// When a disk is full: what is foreseen from lives of a disk that are known, and what is not.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { DiskPoint } from "../../../src/model/disk-usage.ts";
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

describe("with steady growth", () => {
  test("a disk has a forecast of its threshold and of being full", () => {
    expect(shown(pointsOf({ usedGib: steady(1, 75) }))).toEqual({
      rate: 1,
      over: 2.9,
      high: 10,
      full: 25,
    });
  });

  test("a disk is foreseen by the rate of the last hours where these reach to its threshold, and not where it is over it", () => {
    expect(shown(pointsOf({ usedGib: steady(0.5, 75) }))).toEqual({
      rate: 0.5,
      over: 2.9,
      high: 20,
      full: null,
    });
    expect(shown(pointsOf({ usedGib: steady(0.2, 90) }))).toEqual({
      rate: 0.2,
      over: 5.9,
      high: 0,
      full: 50,
    });
  });

  test("nothing is forecast beyond ten times the measured span, but the rate is reported", () => {
    expect(shown(pointsOf({ usedGib: steady(0.01, 60) }))).toEqual({
      rate: 0.01,
      over: 23.9,
      high: null,
      full: null,
    });
  });

  test.each([null, 100])(
    "a disk with the threshold %p has only the time until it is full",
    (it) => {
      expect(shown(pointsOf({ usedGib: steady(1, 90) }), it)).toMatchObject({
        high: null,
        full: 10,
      });
    },
  );
});

describe("too little data", () => {
  test.each([
    ["no point at all", []],
    ["eleven points", pointsOf({ usedGib: steady(1, 75), hours: 10 / 6, everyMinutes: 10 })],
    ["59 minutes", pointsOf({ usedGib: steady(1, 75), hours: 59 / 60, everyMinutes: 1 })],
  ])("gives no forecast: %s", (_, points) => {
    expect(shown(points)).toBeNull();
  });

  test("twelve points and an hour are enough", () => {
    expect(
      shown(pointsOf({ usedGib: steady(1, 75), hours: 11 / 6, everyMinutes: 10 })),
    ).toMatchObject({ rate: 1 });
    expect(shown(pointsOf({ usedGib: steady(1, 75), hours: 1, everyMinutes: 1 }))).toEqual({
      rate: 1,
      over: 1,
      high: 10,
      full: null,
    });
  });

  test("a quarter of the window without a point is not too long ago, and more is", () => {
    const until = (ago: bigint) =>
      shown(pointsOf({ usedGib: steady(1, 75) }).filter(({ at }) => at <= NOW - ago))?.over;
    expect(until(minutes(45))).toBe(2.2);
    expect(until(minutes(50))).toBeGreaterThan(3);
  });
});

describe("without a clear trend", () => {
  test.each([
    ["stays as it is", () => 60],
    ["shrinks", steady(-1, 60)],
    ["grew once, by a burst", (ago: number) => (ago < 12 ? 70 : 60)],
    ["grows to what it had that day before", (ago: number) => (ago > 12 ? 75 : 75 - ago)],
    ["grew in the last half hour alone", (ago: number) => (ago < 0.5 ? 70 - 10 * ago : 65)],
  ])("there is no forecast for a disk that %s", (_, usedGib) => {
    expect(shown(pointsOf({ usedGib }))).toBeNull();
  });
});

const NOISE = { minLength: 289, maxLength: 289 };

describe("the present rate", () => {
  test("is not changed by noise and single wrong measurements", () => {
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
          const foreseen = forecastOf({
            points,
            filesystem: pointAt(NOW, 70),
            highPercent: 85,
            now: NOW,
          });
          const rate = Number(foreseen?.bytesPerHour) / GIB;
          expect(rate).toBeGreaterThan(1.5);
          expect(rate).toBeLessThan(2.6);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("space that crigc frees", () => {
  /** Fills by `rate` an hour and is brought back by ten GiB whenever it is over 85. */
  function sawtooth(rate: number, recorded: boolean): readonly DiskPoint[] {
    let used = 76;
    return pointsOf({ usedGib: () => 0 }).map((point) => {
      used += rate / 12;
      const before = used;
      if (used >= 85) used -= 10;
      const freedBytes = recorded ? BigInt(Math.round((before - used) * GIB)) : 0n;
      return { ...pointAt(point.at, before), freedBytes };
    });
  }

  test("does not lower the rate, which is what others write", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.5, max: 60, noNaN: true }), (rate) => {
        const foreseen = shown(sawtooth(rate, true));
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
