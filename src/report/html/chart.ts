/** The chart of a filesystem: usage, thresholds while in force, freed bytes, passes and events. */

import type { Forecast } from "../../model/disk-usage.ts";
import type { Thresholds } from "../../model/limits.ts";
import type { Instant } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { humanBytes } from "../bytes.ts";
import { forecastWords } from "../forecast.ts";
import { type DiskPoint, type DiskSeries, type Period, placeIn } from "./disk-series.ts";
import { type Mark, marksStrip, timeAxis } from "./marks.ts";
import { type Html, html } from "./text.ts";

export interface Freed {
  readonly at: Instant;
  readonly bytes: bigint;
}

export interface ChartInput {
  readonly series: DiskSeries;
  readonly period: Period;
  /** What removals freed on this filesystem. */
  readonly freed: readonly Freed[];
  readonly marks: readonly Mark[];
  readonly forecast: Forecast | null;
}

// The drawing is stretched to the available width, so labels are HTML around it, not text in it.
const WIDTH = 1000;
const HEIGHT = 100;

/** The range from bottom to top: the upper half only, if the disk is always over half full. */
interface Scale {
  readonly floor: number;
  readonly ticks: readonly number[];
}

const WHOLE: Scale = { floor: 0, ticks: [0, 25, 50, 75, 100] };
const UPPER: Scale = { floor: 50, ticks: [50, 60, 70, 80, 90, 100] };

function scaleFor({ series }: ChartInput): Scale {
  const lows = pointsOf(series).map(({ thresholds }) => thresholds?.lowPercent ?? 100);
  return Math.min(...lows, ...percentsOf(series)) >= UPPER.floor ? UPPER : WHOLE;
}

const pointsOf = (series: DiskSeries): readonly DiskPoint[] => series.pieces.flat();
const percentsOf = (series: DiskSeries): readonly number[] =>
  pointsOf(series).map((point) => point.usedPercent);

/** Distance from the top, in percent of the height. */
const depth = (percent: number, scale: Scale): number =>
  (100 * (100 - percent)) / (100 - scale.floor);

export function diskChart(input: ChartInput): Html {
  const { series, period } = input;
  const scale = scaleFor(input);
  const last = lastThresholds(series);
  return html`<figure>
    <h3>${series.mountpoint} <span class="soft">(${series.roles.join(", ")})</span></h3>
    <div class="plot">
      ${scale.ticks.map((tick) => html`<span class="tick" style="top:${depth(tick, scale)}%">${tick}%</span>`)}
      <svg
        viewBox="0 0 ${WIDTH} ${HEIGHT}"
        preserveAspectRatio="none"
        role="img"
        aria-label="${described(series)}"
      >
        ${scale.ticks.map((tick) => gridLine(tick, scale))}
        ${series.pieces.map((piece) => html`<path class="area" d="${area(piece, scale)}" /><path class="used" d="${line(piece, scale)}" />`)}
        ${series.pieces.map((piece) => [
          steps("high", piece, ({ highPercent }) => y(highPercent, scale)),
          steps("low", piece, ({ lowPercent }) => y(lowPercent, scale)),
        ])}
      </svg>
      ${last === null ? null : thresholdLabels(last, scale)}
    </div>
    ${freedStrip(input)} ${marksStrip(input.marks, period)} ${timeAxis(period)}
    <figcaption>${caption(input)}${forecastText(input)}</figcaption>
  </figure>`;
}

const gridLine = (percent: number, scale: Scale): Html =>
  html`<line
    class="grid"
    x1="0"
    x2="${WIDTH}"
    y1="${y(percent, scale)}"
    y2="${y(percent, scale)}"
  />`;

type Piece = DiskSeries["pieces"][number];

/** A threshold while in force: each point's value holds until the next point. */
function steps(name: string, piece: Piece, level: (it: Thresholds) => string): Html {
  let path = "";
  let before = "";
  for (const [index, { place, thresholds }] of piece.entries()) {
    const height = thresholds === null ? "" : level(thresholds);
    if (height !== "" && height !== before) path += `M${x(place)} ${height}`;
    if (height !== "") path += `H${x(Math.min(1, piece[index + 1]?.place ?? place + SHORT))}`;
    before = height;
  }
  return html`<path class="${name}" d="${path}" />`;
}

/** Width of a single point, as a share of the period. */
const SHORT = 0.003;

const lastThresholds = (series: DiskSeries): Thresholds | null =>
  pointsOf(series).findLast(({ thresholds }) => thresholds !== null)?.thresholds ?? null;

const thresholdLabels = (it: Thresholds, scale: Scale): Html =>
  html`<span class="level high" style="top:${depth(it.highPercent, scale)}%"
      >high ${it.highPercent}%</span
    >
    <span class="level low" style="top:${depth(it.lowPercent, scale)}%"
      >low ${it.lowPercent}%</span
    >`;

// A path without length is invisible, so a single point is drawn as a short stroke.
const line = (piece: Piece, scale: Scale): string =>
  piece
    .map(
      (point, index) =>
        `${index === 0 ? "M" : "L"}${x(point.place)} ${y(point.usedPercent, scale)}`,
    )
    .join("") + (piece.length === 1 ? "h3" : "");

/** The area below the line; misleading, so absent, if the scale does not begin at 0. */
function area(piece: Piece, scale: Scale): string {
  const first = piece[0];
  const last = piece.at(-1);
  if (first === undefined || last === undefined || piece.length === 1 || scale.floor > 0) return "";
  return `${line(piece, scale)}L${x(last.place)} ${HEIGHT}L${x(first.place)} ${HEIGHT}Z`;
}

const x = (place: number): string => (place * WIDTH).toFixed(1);
const y = (percent: number, scale: Scale): string => depth(percent, scale).toFixed(2);

const COLUMNS = 60;

/** Bytes freed in each sixtieth of the period. */
function freedStrip({ freed, period }: ChartInput): Html | null {
  const sums = Array.from({ length: COLUMNS }, () => 0n);
  for (const { at, bytes } of freed) {
    const column = Math.min(COLUMNS - 1, Math.floor(placeIn(period, at) * COLUMNS));
    if (column >= 0) sums[column] = (sums[column] ?? 0n) + bytes;
  }
  const most = sums.reduce((one, other) => (one > other ? one : other), 0n);
  if (most === 0n) return null;
  const wide = WIDTH / COLUMNS;
  return html`<div class="plot strip">
    <span class="tick" style="top:50%">freed</span>
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="Freed over the same time, at most ${humanBytes(most)} in one column"
    >
      ${sums.map((sum, index) => (sum === 0n ? null : freedColumn({ sum, most, left: index * wide, wide })))}
      <line class="grid" x1="0" x2="${WIDTH}" y1="${HEIGHT}" y2="${HEIGHT}" />
    </svg>
  </div>`;
}

function freedColumn(it: {
  readonly sum: bigint;
  readonly most: bigint;
  readonly left: number;
  readonly wide: number;
}): Html {
  const tall = Math.max(4, Number((it.sum * 100n) / it.most));
  return html`<rect
    class="freed"
    x="${(it.left + it.wide * 0.1).toFixed(1)}"
    width="${(it.wide * 0.8).toFixed(1)}"
    y="${HEIGHT - tall}"
    height="${tall}"
    ><title>${humanBytes(it.sum)} freed</title></rect
  >`;
}

function described(series: DiskSeries): string {
  const percents = percentsOf(series);
  const last = lastThresholds(series);
  const thresholds =
    last === null
      ? ""
      : `; GC starts at ${last.highPercent}% and frees down to ${last.lowPercent}%`;
  return `Used share of ${series.mountpoint} over time: between ${Math.min(...percents).toFixed(0)}% and ${Math.max(...percents).toFixed(0)}%${thresholds}`;
}

function caption({ series, freed }: ChartInput): string {
  const { last } = series;
  const used = last.capacityBytes - last.availableBytes;
  const total = freed.reduce((sum, it) => sum + it.bytes, 0n);
  const gained = total === 0n ? "" : ` ${humanBytes(total)} freed in this period, as measured.`;
  return `${humanBytes(used)} of ${humanBytes(last.capacityBytes)} used, ${humanBytes(last.availableBytes)} free.${gained}`;
}

const forecastText = ({ series, forecast }: ChartInput): Html | null =>
  forecast === null
    ? null
    : html` <strong class="forecast"
        >${capitalised(forecastWords(forecast, lastThresholds(series)?.highPercent ?? null))}.</strong
      >`;
