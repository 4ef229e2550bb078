/** The chart of each filesystem over time: usage, thresholds while in force, passes and warnings. */

import type { Forecast } from "../../model/disk-usage.ts";
import type { DiskSample } from "../../model/history.ts";
import type { Thresholds } from "../../model/limits.ts";
import type { Plan } from "../../model/plan.ts";
import { hours, type Instant, instant, minutes, toRfc3339 } from "../../model/time.ts";
import { capitalised, compared } from "../../model/values.ts";
import { counted, humanBytes } from "../bytes.ts";
import { forecastWords } from "../disk.ts";
import { type HistoryReport, passRowWords } from "../history.ts";
import { eventTitle, passTitle } from "../pass-words.ts";
import { type Html, html } from "./html.ts";

export interface Period {
  readonly from: Instant;
  readonly to: Instant;
}

export interface DiskReport {
  /** The period of charts and history. */
  readonly period: Period;
  readonly history: HistoryReport;
  readonly samples: readonly DiskSample[];
  /** By device; absent without a forecast. */
  readonly forecasts: ReadonlyMap<string, Forecast>;
  /** The node as it is now; `null` if it could not be read. */
  readonly plan: Plan | null;
}

/** One device; never empty. */
interface DiskSeries {
  /** Oldest first. */
  readonly samples: readonly DiskSample[];
  readonly last: DiskSample;
  /** Pieces without a gap, oldest first. */
  readonly pieces: readonly (readonly DiskPoint[])[];
}

interface DiskPoint {
  /** 0 at the start of the period, 1 at its end. */
  readonly place: number;
  /** 0 to 100. */
  readonly usedPercent: number;
  readonly thresholds: Thresholds | null;
}

export function diskSection({ plan, history, forecasts, ...report }: DiskReport): Html {
  // Disks as of this plan, which is later than the last pass's sample.
  const samplesNow = (plan?.images?.usage ?? []).map(({ filesystem }) => ({
    ...filesystem,
    at: report.period.to,
    highPercent: null,
    lowPercent: null,
    freedBytes: 0n,
  }));
  const samples = [...report.samples, ...samplesNow];
  const period = recordedPart(report.period, samples);
  const charts = diskSeries(samples, period).map((series) =>
    diskChart({ series, period, history, forecast: forecasts.get(series.last.device) ?? null }),
  );
  return html`<section aria-labelledby="disk">
    <h2 id="disk">Disk usage over time</h2>
    ${charts.length === 0 ? html`<p>No disk usage was recorded in this period; crigc run and crigc gc record it.</p>` : charts}
  </section>`;
}

const SHORTEST_PERIOD = minutes(10);

/** The period from the first sample on, so that a new node's chart is not empty except for its edge. */
function recordedPart({ from, to }: Period, samples: readonly DiskSample[]): Period {
  const first = samples.reduce((least, { at }) => (at < least ? at : least), to);
  const latest = instant(to - SHORTEST_PERIOD);
  const recorded = first < latest ? first : latest;
  return { from: recorded > from ? recorded : from, to };
}

/** One series per device sampled in the period, the image filesystem first. */
export function diskSeries(samples: readonly DiskSample[], period: Period): readonly DiskSeries[] {
  const drawn = samples
    .filter(({ at, capacityBytes }) => at >= period.from && at <= period.to && capacityBytes > 0n)
    .toSorted((one, other) => compared(one.at, other.at));
  return Array.from(Map.groupBy(drawn, ({ device }) => device).values())
    .flatMap((members) => {
      const last = members.at(-1);
      const pieces = piecesOf(thinned(members.map((sample) => pointOf(sample, period))));
      return last === undefined ? [] : [{ samples: members, last, pieces }];
    })
    .toSorted((one, other) => Number(hasImages(other)) - Number(hasImages(one)));
}

const hasImages = ({ last }: DiskSeries): boolean => last.roles.includes("imagefs");

const pointOf = (sample: DiskSample, period: Period): DiskPoint => ({
  place: placeIn(period, sample.at),
  usedPercent: 100 - Number((sample.availableBytes * 10_000n) / sample.capacityBytes) / 100,
  thresholds:
    sample.highPercent === null || sample.lowPercent === null
      ? null
      : { highPercent: sample.highPercent, lowPercent: sample.lowPercent },
});

/** From 0 to 1. */
const placeIn = (period: Period, at: Instant): number => {
  const span = period.to - period.from;
  return span <= 0n ? 1 : Number(((at - period.from) * 1_000_000n) / span) / 1_000_000;
};

const POINTS_MAXIMUM = 480;

/** Keeps the lowest and highest point of each stretch, so that no peak is lost. */
function thinned(points: readonly DiskPoint[]): readonly DiskPoint[] {
  if (points.length <= POINTS_MAXIMUM) return points;
  const stretch = Math.ceil((points.length * 2) / POINTS_MAXIMUM);
  return Array.from({ length: Math.ceil(points.length / stretch) }).flatMap((_, index) => {
    const part = points.slice(index * stretch, (index + 1) * stretch);
    const sorted = part.toSorted((one, other) => one.usedPercent - other.usedPercent);
    return part.filter((point) => point === sorted[0] || point === sorted.at(-1));
  });
}

/** A gap is a pause longer than this many usual pauses, and than this share of the period. */
const GAP_PAUSES = 6;
const GAP_SHARE = 0.02;

function piecesOf(points: readonly DiskPoint[]): readonly (readonly DiskPoint[])[] {
  const pauses = points.slice(1).map((point, index) => point.place - (points[index]?.place ?? 0));
  const usual = pauses.toSorted((one, other) => one - other)[Math.floor(pauses.length / 2)] ?? 0;
  const gap = Math.max(usual * GAP_PAUSES, GAP_SHARE);
  const pieces: DiskPoint[][] = [];
  for (const [index, point] of points.entries()) {
    if (index === 0 || (pauses[index - 1] ?? 0) > gap) pieces.push([]);
    pieces.at(-1)?.push(point);
  }
  return pieces;
}

interface ChartInput {
  readonly series: DiskSeries;
  readonly period: Period;
  /** Its passes and warnings are marked on the filesystem of images. */
  readonly history: HistoryReport;
  readonly forecast: Forecast | null;
}

// The drawing is stretched to the available width, so labels are HTML around it, not text in it.
const WIDTH = 1000;
const HEIGHT = 100;

function diskChart({ series, period, history, forecast }: ChartInput): Html {
  const { last, pieces } = series;
  const points = pieces.flat();
  const isFull = points.every(
    ({ usedPercent, thresholds }) => Math.min(usedPercent, thresholds?.lowPercent ?? 100) >= 50,
  );
  const ticks = isFull ? [50, 60, 70, 80, 90, 100] : [0, 25, 50, 75, 100];
  /** Distance from the top, in percent of the height. */
  const y = (percent: number): string => ((100 * (100 - percent)) / (isFull ? 50 : 100)).toFixed(2);
  const thresholds = points.findLast((point) => point.thresholds !== null)?.thresholds ?? null;
  return html`<figure>
    <h3>${last.mountpoint} <span class="soft">(${last.roles.join(", ")})</span></h3>
    <div class="plot">
      ${ticks.map((tick) => html`<span class="tick" style="top:${y(tick)}%">${tick}%</span>`)}
      <svg
        viewBox="0 0 ${WIDTH} ${HEIGHT}"
        preserveAspectRatio="none"
        role="img"
        aria-label="${described(series, thresholds)}"
      >
        ${ticks.map((tick) => html`<path class="grid" d="M0 ${y(tick)}H${WIDTH}" />`)}
        ${pieces.map(
          (piece) =>
            html`<path class="used" d="${line(piece, y)}" />
              <path class="high" d="${steps(piece, ({ highPercent }) => y(highPercent))}" />
              <path class="low" d="${steps(piece, ({ lowPercent }) => y(lowPercent))}" />`,
        )}
      </svg>
      ${
        thresholds === null
          ? null
          : [
              html`<span class="level high" style="top:${y(thresholds.highPercent)}%"
                >high ${thresholds.highPercent}%</span
              >`,
              html`<span class="level low" style="top:${y(thresholds.lowPercent)}%"
                >low ${thresholds.lowPercent}%</span
              >`,
            ]
      }
    </div>
    ${hasImages(series) ? marksStrip(history, period) : null} ${timeAxis(period)}
    <figcaption>
      ${caption(series)}${forecast === null ? null : html` <strong class="forecast">${capitalised(forecastWords(forecast, thresholds?.highPercent ?? null))}.</strong>`}
    </figcaption>
  </figure>`;
}

const x = (place: number): string => (place * WIDTH).toFixed(1);

// A path without length is invisible, so a single point is drawn as a short stroke.
const line = (piece: readonly DiskPoint[], y: (percent: number) => string): string =>
  piece
    .map((it, index) => `${index === 0 ? "M" : "L"}${x(it.place)} ${y(it.usedPercent)}`)
    .join("") + (piece.length === 1 ? "h3" : "");

/** Width of a single point, as a share of the period. */
const SHORT = 0.003;

/** A threshold while in force: each point's value holds until the next point. */
function steps(piece: readonly DiskPoint[], level: (it: Thresholds) => string): string {
  let path = "";
  let before = "";
  for (const [index, { place, thresholds }] of piece.entries()) {
    const height = thresholds === null ? "" : level(thresholds);
    if (height !== "" && height !== before) path += `M${x(place)} ${height}`;
    if (height !== "") path += `H${x(Math.min(1, piece[index + 1]?.place ?? place + SHORT))}`;
    before = height;
  }
  return path;
}

function described({ last, pieces }: DiskSeries, thresholds: Thresholds | null): string {
  const percents = pieces.flat().map(({ usedPercent }) => usedPercent);
  const levels =
    thresholds === null
      ? ""
      : `; GC starts at ${thresholds.highPercent}% and frees down to ${thresholds.lowPercent}%`;
  return `Used share of ${last.mountpoint} over time: between ${Math.min(...percents).toFixed(0)}% and ${Math.max(...percents).toFixed(0)}%${levels}`;
}

function caption({ last, samples }: DiskSeries): string {
  const used = last.capacityBytes - last.availableBytes;
  const total = samples.reduce((sum, it) => sum + (it.freedBytes ?? 0n), 0n);
  const freed = total === 0n ? "" : ` ${humanBytes(total)} freed in this period, as measured.`;
  return `${humanBytes(used)} of ${humanBytes(last.capacityBytes)} used, ${humanBytes(last.availableBytes)} free.${freed}`;
}

/** More would overlap; the newest are shown. */
const MARKS_SHOWN = 80;

/** One mark per pass that removed something or failed, and per warning. */
function marksStrip({ passes, events }: HistoryReport, period: Period): Html | null {
  const marks = [
    ...passes
      .filter((pass) => pass.removed + pass.failed > 0 || pass.error !== null)
      .map((pass) => ({
        at: pass.startedAt,
        style: pass.error !== null || pass.failed > 0 ? "failed" : "pass",
        text: `${passTitle(pass.kind)}: ${passRowWords(pass)}`,
      })),
    ...events.map(({ at, reason, message }) => ({
      at,
      style: "event",
      text: `${eventTitle(reason)}: ${message}`,
    })),
  ]
    .toSorted((one, other) => compared(one.at, other.at))
    .slice(-MARKS_SHOWN);
  if (marks.length === 0) return null;
  const label = counted(marks.length, "pass or warning", "passes and warnings");
  return html`<div class="marks" role="group" aria-label="${label}">
    ${marks.map(({ at, style, text }) => {
      const words = `${minuteLabel(at)} UTC ${capitalised(text)}`;
      const left = (100 * placeIn(period, at)).toFixed(2);
      return html`<span
        class="mark ${style}"
        style="left:${left}%"
        role="img"
        aria-label="${words}"
        title="${words}"
      ></span>`;
    })}
  </div>`;
}

const DAY = hours(24);
/** From a quarter of an hour to 90 days. */
const STEPS = [0.25, 1, 3, 6, 12, 24, 2 * 24, 7 * 24, 14 * 24, 30 * 24, 90 * 24].map(hours);
const LABELS_MAXIMUM = 8;

/** Labels at round times of UTC; a narrow screen shows every other one. */
function timeAxis(period: Period): Html {
  const span = period.to - period.from;
  const step = STEPS.find((it) => span / it <= LABELS_MAXIMUM) ?? span;
  const label = step >= DAY ? dayLabel : minuteLabel;
  const first = (period.from / step + 1n) * step;
  const count = span <= 0n ? 0 : Number((period.to - first) / step) + 1;
  const times = Array.from({ length: count }, (_, index) => instant(first + BigInt(index) * step));
  return html`<div class="times" aria-hidden="true">
    ${times.map((at) => html`<span style="left:${(100 * placeIn(period, at)).toFixed(2)}%">${label(at)}</span>`)}
  </div>`;
}

const dayLabel = (at: Instant): string => toRfc3339(at).slice(5, 10);
const minuteLabel = (at: Instant): string => toRfc3339(at).slice(5, 16).replace("T", " ");
