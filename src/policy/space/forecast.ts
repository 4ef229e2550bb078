/** Forecasts when a filesystem reaches its high threshold and when it is full, from what other programs write. */

import type { DiskPoint, Forecast } from "../../model/reports.ts";
import {
  type Duration,
  duration,
  durationFromMs,
  hours,
  type Instant,
  instant,
  instantToMs,
  minutes,
  plus,
  since,
  toMs,
} from "../../model/time.ts";

/** Windows up to a day: the shortest that gives a forecast decides. */
const DAY = hours(24);
const WINDOWS: readonly Duration[] = [hours(3), hours(6), hours(12), DAY];
const SPAN_MINIMUM = hours(1);
const POINTS_MINIMUM = 12;
/** Maximum number of points in a window; more are thinned, so that a burst of passes weighs no more than its duration. */
const POINTS_MAXIMUM = 48;
/** The share of pairs of points that must rise for a clear trend. */
const RISING_MINIMUM = 0.75;
const HORIZON_SPANS = 10n;
/** A clock that goes back further than this was set; smaller steps are two passes that waited for each other. */
const CLOCK_SET = minutes(5);

export interface ForecastInput {
  /** Of all filesystems, in the order in which they were recorded. */
  readonly points: readonly DiskPoint[];
  readonly filesystem: Pick<
    DiskPoint,
    "device" | "mountpoint" | "capacityBytes" | "availableBytes"
  >;
  /** `null`, or 100: no threshold watches the filesystem. */
  readonly highPercent: number | null;
  readonly now: Instant;
}

/** `null` if there is too little data, or no clear trend. */
export function forecastOf(input: ForecastInput): Forecast | null {
  const growth = growthOf(input);
  const forecasts = WINDOWS.flatMap((window): readonly Forecast[] => {
    const trend = trendOf(growth, { window, now: input.now });
    return trend === null ? [] : [forecastBy(trend, input)];
  });
  const telling = forecasts.find(
    ({ untilHigh, untilFull }) => untilFull !== null || (untilHigh !== null && untilHigh > 0n),
  );
  return telling ?? forecasts.at(-1) ?? null;
}

/** What would be in use if crigc had removed nothing since the first point. */
interface Growth {
  readonly at: Instant;
  readonly bytes: number;
}

/** The latest points that belong together: of one filesystem that was not resized, without a change of the clock. */
function growthOf({ points, filesystem }: ForecastInput): readonly Growth[] {
  let series: Growth[] = [];
  let freed = 0n;
  let before: DiskPoint | null = null;
  for (const point of points) {
    if (point.device !== filesystem.device) continue;
    const freedSince = before === null ? null : freedBetween(before, point);
    if (freedSince === null) {
      series = [];
      freed = 0n;
    } else freed += freedSince;
    before = point;
    if (!isSame(point, filesystem)) continue;
    const used = point.capacityBytes - point.availableBytes;
    series.push({ at: point.at, bytes: Number(used + freed) });
  }
  return series;
}

/** `null` if it is unknown, or the points do not belong together. */
const freedBetween = (before: DiskPoint, point: DiskPoint): bigint | null =>
  isSame(before, point) && point.at >= before.at - CLOCK_SET ? before.freedBytes : null;

const isSame = (
  one: Pick<DiskPoint, "mountpoint" | "capacityBytes">,
  other: Pick<DiskPoint, "mountpoint" | "capacityBytes">,
): boolean => one.mountpoint === other.mountpoint && one.capacityBytes === other.capacityBytes;

interface Trend {
  readonly bytesPerMs: number;
  readonly span: Duration;
}

/** The median slope of all pairs of points, which a single burst or wrong measurement does not affect. */
function trendOf(
  growth: readonly Growth[],
  { window, now }: { readonly window: Duration; readonly now: Instant },
): Trend | null {
  const ofDay = growth.filter(({ at }) => at > now - DAY && at <= now);
  const within = ofDay.filter(({ at }) => at > now - window);
  const points = thinned(within, window);
  const first = within[0];
  const last = within.at(-1);
  if (first === undefined || last === undefined || points.length < POINTS_MINIMUM) return null;
  const span = duration(last.at - first.at);
  // A trend that ended long ago is not the present rate.
  if (span < SPAN_MINIMUM || now - last.at > window / 4n) return null;
  // Usage was this high earlier in the day and fell again, so this rise may be temporary too.
  if (ofDay.some(({ at, bytes }) => at < first.at && bytes >= last.bytes)) return null;
  const slopes = slopesOf(points).toSorted((one, other) => one - other);
  const bytesPerMs = slopes[Math.floor(slopes.length / 2)];
  const rising = slopes.filter((slope) => slope > 0).length;
  if (bytesPerMs === undefined || rising < RISING_MINIMUM * slopes.length) return null;
  return { bytesPerMs, span };
}

/**
 * The mean of each of the equal parts of the window. Single points would mislead if usage goes up and down about as
 * often as the parts follow one another: such points rise all day.
 */
function thinned(points: readonly Growth[], window: Duration): readonly Growth[] {
  const part = window / BigInt(POINTS_MAXIMUM);
  return Array.from(
    Map.groupBy(points, ({ at }) => at / part),
    ([index, members]) => {
      const start = instant(index * part);
      const mean = (of: (point: Growth) => number): number =>
        members.reduce((sum, point) => sum + of(point), 0) / members.length;
      const after = durationFromMs(mean(({ at }) => toMs(since(at, start))));
      return { at: plus(start, after), bytes: mean(({ bytes }) => bytes) };
    },
  );
}

/** Points of two parts of a window never have the same millisecond. */
const slopesOf = (points: readonly Growth[]): readonly number[] =>
  points.flatMap((one, index) =>
    points
      .slice(index + 1)
      .map((other) => (other.bytes - one.bytes) / (instantToMs(other.at) - instantToMs(one.at))),
  );

function forecastBy({ bytesPerMs, span }: Trend, input: ForecastInput): Forecast {
  const { filesystem, highPercent } = input;
  const horizon = duration(span * HORIZON_SPANS);
  const until = (bytes: bigint): Duration | null => {
    const ms = bytes <= 0n ? 0 : Number(bytes) / bytesPerMs;
    return ms <= toMs(horizon) ? durationFromMs(ms) : null;
  };
  const { capacityBytes, availableBytes } = filesystem;
  const relieved = (capacityBytes * BigInt(100 - (highPercent ?? 100))) / 100n;
  return {
    bytesPerHour: BigInt(Math.round(bytesPerMs * toMs(hours(1)))),
    span,
    horizon,
    untilHigh: relieved === 0n ? null : until(availableBytes - relieved),
    untilFull: until(availableBytes),
  };
}
