/** The chart of each filesystem over time: usage, its thresholds, passes and warnings. */

import type { DiskSample } from "../../model/history.ts";
import type { DiskUsage } from "../../model/plan.ts";
import type { Forecast } from "../../model/reports.ts";
import { type Instant, instant, minutes, toRfc3339 } from "../../model/time.ts";
import { capitalised, compared } from "../../model/values.ts";
import { forecastJson, forecastWords } from "../disk.ts";
import { type HistoryDocument, passRowWords } from "../history.ts";
import { eventWords, passTitle } from "../pass-words.ts";
import { counted, humanBytes, instantOf } from "../words.ts";
import { type Html, html } from "./html.ts";

export interface Period {
  readonly from: Instant;
  readonly to: Instant;
}

export interface ChartFacts {
  /** The period of charts and history. */
  readonly period: Period;
  readonly samples: readonly DiskSample[];
  /** By device; absent without a forecast. */
  readonly forecasts: ReadonlyMap<string, Forecast>;
}

/** `now`: the disks as of a plan, which is later than the last pass's sample. */
export function diskSection(
  { period: asked, forecasts, samples }: ChartFacts,
  history: HistoryDocument,
  now: readonly DiskUsage[],
): Html {
  const all = [
    ...samples,
    ...now.map((usage) => ({ ...usage, ...usage.filesystem, at: asked.to, freedBytes: 0n })),
  ];
  const period = recordedPart(asked, all);
  const charts = diskSeries(all, period).map((series) => {
    const { device, roles } = series.last;
    const forecast = forecasts.get(device) ?? null;
    // Passes and warnings are marked on the filesystem of images.
    const marks = roles.includes("imagefs") ? marksStrip(history, period) : null;
    return diskChart(series, forecast, [marks, timeAxis(period)]);
  });
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

/** One device; never empty. */
interface DiskSeries {
  /** Oldest first. */
  readonly samples: readonly DiskSample[];
  readonly last: DiskSample;
  /** Pieces without a gap, oldest first. */
  readonly pieces: readonly (readonly DiskPoint[])[];
}

interface DiskPoint {
  /** Column of the chart, from 0 to `WIDTH`. */
  readonly x: number;
  /** 0 to 100. */
  readonly usedPercent: number;
}

/** One series per device sampled in the period, the image filesystem first. */
export function diskSeries(samples: readonly DiskSample[], period: Period): readonly DiskSeries[] {
  const drawn = samples
    .filter(({ at, capacityBytes }) => at >= period.from && at <= period.to && capacityBytes > 0n)
    .toSorted((one, other) => compared(one.at, other.at));
  return Array.from(Map.groupBy(drawn, ({ device }) => device).values())
    .flatMap((members) => {
      const last = members.at(-1);
      const points = members.map(({ at, availableBytes, capacityBytes }) => ({
        x: Math.round(placeIn(period, at) * WIDTH),
        usedPercent: 100 - Number((availableBytes * 10_000n) / capacityBytes) / 100,
      }));
      return last === undefined ? [] : [{ samples: members, last, pieces: piecesOf(points) }];
    })
    .toSorted((one, other) => Number(hasImages(other)) - Number(hasImages(one)));
}

const hasImages = ({ last }: DiskSeries): boolean => last.roles.includes("imagefs");

/** From 0 to 1. */
const placeIn = ({ from, to }: Period, at: Instant): number =>
  to <= from ? 1 : Number(((at - from) * 1_000_000n) / (to - from)) / 1_000_000;

/** A gap is a pause longer than this many usual pauses, and than this share of the period. */
const GAP_PAUSES = 6;
const GAP_SHARE = 0.02;

function piecesOf(points: readonly DiskPoint[]): readonly (readonly DiskPoint[])[] {
  const pauses = points.slice(1).map((point, index) => point.x - (points[index]?.x ?? 0));
  const usual = pauses.toSorted((one, other) => one - other)[Math.floor(pauses.length / 2)] ?? 0;
  const gap = Math.max(usual * GAP_PAUSES, GAP_SHARE * WIDTH);
  const pieces: DiskPoint[][] = [];
  for (const [index, point] of points.entries()) {
    if (index === 0 || (pauses[index - 1] ?? 0) > gap) pieces.push([]);
    pieces.at(-1)?.push(point);
  }
  return pieces.map(thinned);
}

/** The lowest and the highest point of each column, so that no peak is lost. */
const thinned = (points: readonly DiskPoint[]): readonly DiskPoint[] =>
  [...Map.groupBy(points, ({ x }) => x).values()].flatMap((column) => {
    const sorted = column.toSorted((one, other) => one.usedPercent - other.usedPercent);
    return column.filter((point) => point === sorted[0] || point === sorted.at(-1));
  });

// The drawing is stretched to the available width, so labels are HTML around it, not text in it.
const WIDTH = 1000;
const HEIGHT = 100;

/** `below`: what has the same axis. */
function diskChart(
  { last, samples, pieces }: DiskSeries,
  forecast: Forecast | null,
  below: readonly (Html | null)[],
): Html {
  const percents = pieces.flat().map(({ usedPercent }) => usedPercent);
  const [least, most] = [Math.min(...percents), Math.max(...percents)];
  const thresholds = samples.findLast(({ highPercent }) => highPercent !== null);
  const levels = (["high", "low"] as const).flatMap((name) => {
    const percent = thresholds?.[`${name}Percent`] ?? null;
    return percent === null ? [] : [{ name, percent }];
  });
  const isFull = [least, ...levels.map(({ percent }) => percent)].every((percent) => percent >= 50);
  const ticks = isFull ? [50, 60, 70, 80, 90, 100] : [0, 25, 50, 75, 100];
  /** Distance from the top, in percent of the height. */
  const y = (percent: number): string => ((100 * (100 - percent)) / (isFull ? 50 : 100)).toFixed(2);
  const [high = null, low = null] = levels.map(({ percent }) => percent);
  const levelWords = high === null ? "" : `; GC starts at ${high}% and frees down to ${low}%`;
  const words = `Used share of ${last.mountpoint} over time: between ${least.toFixed(0)}% and ${most.toFixed(0)}%${levelWords}`;
  const freed = samples.reduce((sum, it) => sum + (it.freedBytes ?? 0n), 0n);
  return html`<figure>
    <h3>${last.mountpoint} <span class="soft">(${last.roles.join(", ")})</span></h3>
    <div class="plot">
      ${ticks.map((tick) => html`<span class="tick" style="top:${y(tick)}%">${tick}%</span>`)}
      <svg
        viewBox="0 0 ${WIDTH} ${HEIGHT}"
        preserveAspectRatio="none"
        role="img"
        aria-label="${words}"
      >
        ${ticks.map((tick) => html`<path class="grid" d="M0 ${y(tick)}H${WIDTH}" />`)}
        ${pieces.map((piece) => html`<path class="used" d="${line(piece, y)}" />`)}
        ${levels.map(({ name, percent }) => html`<path class="${name}" d="M0 ${y(percent)}H${WIDTH}" />`)}
      </svg>
      ${levels.map(({ name, percent }) => html`<span class="level ${name}" style="top:${y(percent)}%">${name} ${percent}%</span>`)}
    </div>
    ${below}
    <figcaption>
      ${humanBytes(last.capacityBytes - last.availableBytes)} of ${humanBytes(last.capacityBytes)}
      used, ${humanBytes(last.availableBytes)}
      free.${freed === 0n ? "" : ` ${humanBytes(freed)} freed in this period, as measured.`}${forecast === null ? null : html` <strong class="forecast">${capitalised(forecastWords(forecastJson(forecast), high))}.</strong>`}
    </figcaption>
  </figure>`;
}

// A path without length is invisible, so a single point is drawn as a short stroke.
const line = (piece: readonly DiskPoint[], y: (percent: number) => string): string =>
  `M${piece.map((it) => `${it.x} ${y(it.usedPercent)}`).join("L")}${piece.length === 1 ? "h3" : ""}`;

/** More would overlap; the newest are shown. */
const MARKS_SHOWN = 80;

/** One mark per pass that removed something or failed, and per warning. */
function marksStrip({ passes, events }: HistoryDocument, period: Period): Html | null {
  const marks = [
    ...passes
      .filter((pass) => pass.removed + pass.failed > 0 || pass.error !== null)
      .map((pass) => ({
        at: pass.startedAt,
        style: pass.error !== null || pass.failed > 0 ? "failed" : "pass",
        text: `${passTitle(pass.passKind)}: ${passRowWords(pass)}`,
      })),
    ...events.map((event) => ({ at: event.at, style: "event", text: eventWords(event) })),
  ]
    .map((mark) => ({ ...mark, at: instantOf(mark.at) }))
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

const LABELS = 6;

/** Equal parts of the period; a narrow screen shows every other label. */
function timeAxis({ from, to }: Period): Html {
  const labels = Array.from({ length: LABELS }, (_, index) => {
    const at = instant(from + ((to - from) * BigInt(index)) / BigInt(LABELS));
    return html`<span style="left:${((100 * index) / LABELS).toFixed(2)}%"
      >${minuteLabel(at)}</span
    >`;
  });
  return html`<div class="times" aria-hidden="true">${labels}</div>`;
}

const minuteLabel = (at: Instant): string => toRfc3339(at).slice(5, 16).replace("T", " ");
