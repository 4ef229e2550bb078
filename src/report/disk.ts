/** A filesystem in words: its figures, a bar fitted to the width with its thresholds, and its forecast. */

import type { Forecast } from "../model/disk-usage.ts";
import type { Thresholds } from "../model/limits.ts";
import type { DiskUsage, EvictionMark } from "../model/plan.ts";
import { humanBytes, humanMs } from "./bytes.ts";
import { filesystemJson, jsonOf } from "./document.ts";
import type { Printer } from "./printer.ts";
import { clean, type Colour, paint, type Screen } from "./terminal.ts";

export type UsageJson = ReturnType<typeof usageJson>;

/** A filesystem of a plan with the thresholds in force. */
export const usageJson = ({ filesystem, evictions = [], ...usage }: DiskUsage) => ({
  ...filesystemJson(filesystem),
  ...jsonOf(usage, "usedPercent", "inodesUsedPercent", "highPercent", "lowPercent"),
  evictions: evictions.map((mark) => jsonOf(mark)),
});

/** Inodes are shown only if they have a threshold. */
export function printUsage(printer: Printer, usage: UsageJson): void {
  const { inodesUsedPercent: percent, inodesFree, inodes } = usage;
  printFigures(printer, usage);
  printBar(printer, usage);
  if (percent !== null) printer.line(`  inodes: ${percent}% used, ${inodesFree} of ${inodes} free`);
}

/** `rest`: what else to say of the filesystem. */
export function printFigures(
  printer: Printer,
  filesystem: ReturnType<typeof filesystemJson>,
  rest = "",
): void {
  const { mountpoint, roles, capacityBytes, availableBytes, usedPercent } = filesystem;
  const { screen } = printer;
  const name = paint(screen, "bold", clean(mountpoint));
  const free = `${humanBytes(availableBytes)} of ${humanBytes(capacityBytes)} free`;
  const figures = `${name}: ${usedPercent}% used, ${free}${rest}`;
  const line = `${figures} (${roles.join(", ")})`;
  if (screen.width === null || Bun.stringWidth(line) <= screen.width) return printer.line(line);
  // Roles on a line of their own are not cut in two.
  printer.say(figures);
  printer.line(`  ${roles.join(", ")}`);
}

export const printBar = (printer: Printer, figures: BarFigures): void => {
  for (const line of diskBar(figures, printer.screen)) printer.line(`  ${line}`);
};

export interface BarFigures {
  readonly usedPercent: number;
  /** `null`: the filesystem has no threshold of its own. */
  readonly lowPercent: number | null;
  readonly highPercent: number | null;
  readonly evictions?: readonly EvictionMark[];
}

const WIDTH_MAXIMUM = 60;
const WIDTH_MINIMUM = 20;

/** The bar, and below it what its marks mean. One line where there are no thresholds. */
export function diskBar(figures: BarFigures, screen: Screen): readonly string[] {
  const { evictions = [] } = figures;
  const thresholds = thresholdsOf(figures);
  // The indentation and both ends.
  const room = (screen.width ?? 80) - 4;
  const width = Math.max(WIDTH_MINIMUM, Math.min(WIDTH_MAXIMUM, room));
  const bar = barText(figures, width, screen);
  return thresholds === null
    ? [bar]
    : [bar, legend(thresholds, width, screen), ...evictionLines(evictions, screen)];
}

const thresholdsOf = ({ lowPercent, highPercent }: BarFigures): Thresholds | null =>
  lowPercent === null || highPercent === null ? null : { lowPercent, highPercent };

/** One line for each mark of the bar, with the signals that are met there. */
const evictionLines = (marks: readonly EvictionMark[], screen: Screen): readonly string[] =>
  [...Map.groupBy(marks, ({ usedPercent }) => usedPercent)].map(([percent, those]) => {
    const signals = those.map(({ signal }) => signal).join(", ");
    const isMet = those.some(({ met }) => met);
    const words = `${evictionGlyph(screen)} ${percent}% eviction: ${signals}${isMet ? ", met" : ""}`;
    return paint(screen, isMet ? "red" : "dim", words);
  });

const evictionGlyph = (screen: Screen): string => (screen.unicode ? "┊" : ":");

function barText(figures: BarFigures, width: number, screen: Screen): string {
  const { usedPercent, lowPercent, highPercent, evictions = [] } = figures;
  const used = cells(usedPercent, width);
  const marks = [lowPercent, highPercent].filter((percent) => percent !== null);
  const markCells = new Set(marks.map((percent) => cellOf(percent, width)));
  const evictionCells = new Set(evictions.map((mark) => cellOf(mark.usedPercent, width)));
  const [full, empty, mark, open, close] = screen.unicode
    ? ["█", "░", "│", "▕", "▏"]
    : ["#", ".", "|", "[", "]"];
  const drawn = Array.from({ length: width }, (_, cell) => {
    if (markCells.has(cell)) return mark;
    if (evictionCells.has(cell)) return evictionGlyph(screen);
    return paint(screen, colourOf(figures), cell < used ? full : empty);
  });
  return open + joinedColours(drawn.join("")) + close;
}

// Neighbouring cells of one colour need no escape between them.
const joinedColours = (line: string): string =>
  // oxlint-disable-next-line no-control-regex -- our own colours
  line.replace(/\u001b\[0m\u001b\[\d+m/g, "");

function colourOf({ usedPercent, lowPercent, highPercent }: BarFigures): Colour {
  if (lowPercent === null || highPercent === null) return "blue";
  if (usedPercent >= highPercent) return "red";
  return usedPercent >= lowPercent ? "yellow" : "green";
}

/** `low 80% ┘ └ high 85%`, each at its mark; where a label has no room there, both in words. */
function legend(thresholds: Thresholds, width: number, screen: Screen): string {
  const [left, right] = screen.unicode ? ["┘", "└"] : ["^", "^"];
  const low = `low ${thresholds.lowPercent}% `;
  const high = ` high ${thresholds.highPercent}%`;
  const lowAt = cellOf(thresholds.lowPercent, width) + 1;
  const highAt = cellOf(thresholds.highPercent, width) + 1;
  const fits = lowAt >= low.length && highAt + 1 + high.length <= width + 2;
  if (!fits) return paint(screen, "dim", `marks: ${low.trim()},${high}`);
  const marks = lowAt === highAt ? left : left + " ".repeat(highAt - lowAt - 1) + right;
  return paint(screen, "dim", `${" ".repeat(lowAt - low.length)}${low}${marks}${high}`);
}

/** Full cells; anything used shows at least one, and only a full disk fills the last one. */
function cells(percent: number, width: number): number {
  if (percent <= 0) return 0;
  if (percent >= 100) return width;
  return Math.min(width - 1, Math.max(1, Math.round((percent / 100) * width)));
}

const cellOf = (percent: number, width: number): number =>
  Math.max(0, Math.min(width - 1, Math.round((percent / 100) * width)));

export const forecastJson = (it: Forecast) =>
  jsonOf({
    bytesPerHour: it.bytesPerHour,
    measuredOver: it.span,
    horizon: it.horizon,
    untilHighThreshold: it.untilHigh,
    untilFull: it.untilFull,
  });

/** `reaches 85% in 6h, full in 21h if nothing is removed, at 1.2 GiB/h (measured over 18h)`. */
export function forecastWords(
  forecast: ReturnType<typeof forecastJson>,
  highPercent: number | null,
): string {
  const { untilHighThresholdMs: untilHigh, untilFullMs: untilFull } = forecast;
  const within = `within ${humanMs(forecast.horizonMs)}`;
  const full =
    untilFull === null
      ? `not full ${within}`
      : `full in ${humanMs(untilFull)} if nothing is removed`;
  const hasThreshold = highPercent !== null && highPercent < 100 && untilHigh !== 0;
  const when = !hasThreshold
    ? full
    : untilHigh !== null
      ? `reaches ${highPercent}% in ${humanMs(untilHigh)}, ${full}`
      : `does not reach ${highPercent}% ${within}${untilFull === null ? "" : `, ${full}`}`;
  return `${when}, at ${humanBytes(forecast.bytesPerHour)}/h (measured over ${humanMs(forecast.measuredOverMs)})`;
}
