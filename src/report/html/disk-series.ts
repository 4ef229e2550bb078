/** Reduces the samples of a filesystem to a drawable number of points, with gaps where none were recorded. */

import type { DiskSample } from "../../model/history.ts";
import type { Thresholds } from "../../model/limits.ts";
import type { Instant } from "../../model/time.ts";
import { compared } from "../../model/values.ts";

export interface DiskSeries {
  readonly device: string;
  readonly mountpoint: string;
  readonly roles: readonly string[];
  /** The newest one. */
  readonly last: DiskSample;
  /** Pieces without a gap, the oldest first. */
  readonly pieces: readonly (readonly DiskPoint[])[];
}

export interface DiskPoint {
  /** 0 at the start of the period, 1 at its end. */
  readonly place: number;
  /** 0 to 100. */
  readonly usedPercent: number;
  readonly thresholds: Thresholds | null;
}

export interface Period {
  readonly from: Instant;
  readonly to: Instant;
}

const POINTS_MAXIMUM = 480;
/** A gap is a pause longer than this many usual pauses, and than this share of the period. */
const GAP_PAUSES = 6;
const GAP_SHARE = 0.02;

/** One series per device sampled in the period, the image filesystem first. */
export function diskSeries(samples: readonly DiskSample[], period: Period): readonly DiskSeries[] {
  const drawn = samples.filter(
    ({ at, capacityBytes }) => at >= period.from && at <= period.to && capacityBytes > 0n,
  );
  return Array.from(Map.groupBy(drawn, ({ device }) => device).values())
    .flatMap((members) => seriesOf(members, period))
    .toSorted((one, other) => imagesFirst(one) - imagesFirst(other));
}

const imagesFirst = (series: DiskSeries): number => (series.roles.includes("imagefs") ? 0 : 1);

function seriesOf(members: readonly DiskSample[], period: Period): readonly DiskSeries[] {
  const sorted = members.toSorted((one, other) => compared(one.at, other.at));
  const last = sorted.at(-1);
  if (last === undefined) return [];
  const points = thinned(sorted.map((sample) => pointOf(sample, period)));
  const { device, mountpoint, roles } = last;
  return [{ device, mountpoint, roles, last, pieces: pieces(points) }];
}

const pointOf = (sample: DiskSample, period: Period): DiskPoint => ({
  place: placeIn(period, sample.at),
  usedPercent: 100 - Number((sample.availableBytes * 10_000n) / sample.capacityBytes) / 100,
  thresholds:
    sample.highPercent === null || sample.lowPercent === null
      ? null
      : { highPercent: sample.highPercent, lowPercent: sample.lowPercent },
});

/** From 0 to 1. */
export const placeIn = (period: Period, at: Instant): number => {
  const span = period.to - period.from;
  return span <= 0n ? 1 : Number(((at - period.from) * 1_000_000n) / span) / 1_000_000;
};

/** Keeps the lowest and highest point of each stretch, so that no peak is lost. */
function thinned(points: readonly DiskPoint[]): readonly DiskPoint[] {
  if (points.length <= POINTS_MAXIMUM) return points;
  const stretch = Math.ceil((points.length * 2) / POINTS_MAXIMUM);
  const kept: DiskPoint[] = [];
  for (let start = 0; start < points.length; start += stretch) {
    const part = points.slice(start, start + stretch);
    const by = part.toSorted((one, other) => one.usedPercent - other.usedPercent);
    const ends = new Set([by[0], by.at(-1)]);
    kept.push(...part.filter((point) => ends.has(point)));
  }
  return kept;
}

function pieces(points: readonly DiskPoint[]): readonly (readonly DiskPoint[])[] {
  const pauses = points.slice(1).map((point, index) => point.place - (points[index]?.place ?? 0));
  const usual = pauses.toSorted((one, other) => one - other)[Math.floor(pauses.length / 2)] ?? 0;
  const gap = Math.max(usual * GAP_PAUSES, GAP_SHARE);
  const whole: DiskPoint[][] = [];
  let before: DiskPoint | null = null;
  for (const point of points) {
    if (before === null || point.place - before.place > gap) whole.push([]);
    whole.at(-1)?.push(point);
    before = point;
  }
  return whole;
}
