/** The chart of a filesystem: what is used over time between its thresholds, and what was freed when. */

import { type Instant, instant, toRfc3339 } from "../../model/time.ts";
import { humanBytes } from "../bytes.ts";
import { type DiskSeries, type Period, placeIn } from "./disk-series.ts";
import { type Html, html } from "./text.ts";

export interface Freed {
  readonly at: Instant;
  readonly bytes: bigint;
}

export interface ChartInput {
  readonly series: DiskSeries;
  readonly period: Period;
  /** `null`: no threshold watches this filesystem. */
  readonly thresholds: { readonly lowPercent: number; readonly highPercent: number } | null;
  /** What removals gained on this filesystem. */
  readonly freed: readonly Freed[];
}

// The drawing is stretched to whatever width there is, so it holds no text: the labels are HTML beside it.
const WIDTH = 1000;
const HEIGHT = 100;

/** What the chart shows from bottom to top. A disk that is never below half full is drawn larger. */
interface Scale {
  readonly floor: number;
  readonly ticks: readonly number[];
}

const WHOLE: Scale = { floor: 0, ticks: [0, 25, 50, 75, 100] };
const UPPER: Scale = { floor: 50, ticks: [50, 60, 70, 80, 90, 100] };

function scaleFor(input: ChartInput): Scale {
  const low = input.thresholds?.lowPercent ?? 100;
  return Math.min(low, ...percentsOf(input)) >= UPPER.floor ? UPPER : WHOLE;
}

const percentsOf = (input: ChartInput): readonly number[] =>
  input.series.pieces.flat().map((point) => point.usedPercent);

/** From the top, in percent of the height. */
const depth = (percent: number, scale: Scale): number =>
  (100 * (100 - percent)) / (100 - scale.floor);

export function diskChart(input: ChartInput): Html {
  const { series, period, thresholds } = input;
  const scale = scaleFor(input);
  return html`<figure>
    <h3>${series.mountpoint} <span class="soft">(${series.roles.join(", ")})</span></h3>
    <div class="plot">
      ${scale.ticks.map((tick) => html`<span class="tick" style="top:${depth(tick, scale)}%">${tick}%</span>`)}
      <svg
        viewBox="0 0 ${WIDTH} ${HEIGHT}"
        preserveAspectRatio="none"
        role="img"
        aria-label="${described(input)}"
      >
        ${scale.ticks.map((tick) => level("grid", tick, scale))}
        ${series.pieces.map((piece) => html`<path class="area" d="${area(piece, scale)}" /><path class="used" d="${line(piece, scale)}" />`)}
        ${thresholds === null ? null : [level("high", thresholds.highPercent, scale), level("low", thresholds.lowPercent, scale)]}
      </svg>
      ${thresholds === null ? null : marks(thresholds, scale)}
    </div>
    ${strip(input)}
    <div class="times">${timeLabels(period).map((label) => html`<span>${label}</span>`)}</div>
    <figcaption>${caption(input)}</figcaption>
  </figure>`;
}

const level = (name: string, percent: number, scale: Scale): Html =>
  html`<line
    class="${name}"
    x1="0"
    x2="${WIDTH}"
    y1="${y(percent, scale)}"
    y2="${y(percent, scale)}"
  />`;

type Thresholds = NonNullable<ChartInput["thresholds"]>;

const marks = (it: Thresholds, scale: Scale): Html =>
  html`<span class="mark high" style="top:${depth(it.highPercent, scale)}%"
      >high ${it.highPercent}%</span
    >
    <span class="mark low" style="top:${depth(it.lowPercent, scale)}%"
      >low ${it.lowPercent}%</span
    >`;

type Piece = DiskSeries["pieces"][number];

// A path without length shows nothing, so a single point is drawn as a short stroke.
const line = (piece: Piece, scale: Scale): string =>
  piece
    .map(
      (point, index) =>
        `${index === 0 ? "M" : "L"}${x(point.place)} ${y(point.usedPercent, scale)}`,
    )
    .join("") + (piece.length === 1 ? "h3" : "");

/** Filled down to nothing; a scale that does not begin there has no area that would be true. */
function area(piece: Piece, scale: Scale): string {
  const first = piece[0];
  const last = piece.at(-1);
  if (first === undefined || last === undefined || piece.length === 1 || scale.floor > 0) return "";
  return `${line(piece, scale)}L${x(last.place)} ${HEIGHT}L${x(first.place)} ${HEIGHT}Z`;
}

const x = (place: number): string => (place * WIDTH).toFixed(1);
const y = (percent: number, scale: Scale): string => depth(percent, scale).toFixed(2);

const COLUMNS = 60;

/** What was freed in each sixtieth of the period. */
function strip(input: ChartInput): Html | null {
  const sums = Array.from({ length: COLUMNS }, () => 0n);
  for (const { at, bytes } of input.freed) {
    const column = Math.min(COLUMNS - 1, Math.floor(placeIn(input.period, at) * COLUMNS));
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

function described(input: ChartInput): string {
  const percents = percentsOf(input);
  const least = Math.min(...percents).toFixed(0);
  const most = Math.max(...percents).toFixed(0);
  const thresholds =
    input.thresholds === null
      ? ""
      : `; collection starts at ${input.thresholds.highPercent}% and frees down to ${input.thresholds.lowPercent}%`;
  return `Used share of ${input.series.mountpoint} over time: between ${least}% and ${most}%${thresholds}`;
}

function caption(input: ChartInput): string {
  const { last } = input.series;
  const used = last.capacityBytes - last.availableBytes;
  const total = input.freed.reduce((sum, it) => sum + it.bytes, 0n);
  const freed = total === 0n ? "" : ` ${humanBytes(total)} freed in this time, as measured.`;
  return `${humanBytes(used)} of ${humanBytes(last.capacityBytes)} used at the end, ${humanBytes(last.availableBytes)} free.${freed}`;
}

const DAY_NS = 86_400_000_000_000n;

/** The beginning, the middle and the end: three labels fit every width. */
function timeLabels(period: Period): readonly string[] {
  const middle = instant((period.from + period.to) / 2n);
  const label = period.to - period.from > 2n * DAY_NS ? dayLabel : minuteLabel;
  return [period.from, middle, period.to].map(label);
}

const dayLabel = (at: Instant): string => toRfc3339(at).slice(0, 10);
const minuteLabel = (at: Instant): string => `${toRfc3339(at).slice(5, 16).replace("T", " ")} UTC`;
