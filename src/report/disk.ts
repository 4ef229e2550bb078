/** A filesystem in words: its figures, and a bar fitted to the width with its thresholds. */

import type { DiskBreakdown, DiskUsage, EvictionMark } from "../model/plan.ts";
import { filesystemJson, jsonOf } from "./document.ts";
import type { Printer } from "./printer.ts";
import { clean, type Colour, paint, present, type Screen } from "./terminal.ts";
import { humanBytes, spaceWords } from "./words.ts";

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
  const { mountpoint, roles } = filesystem;
  const { screen } = printer;
  const name = paint(screen, "bold", clean(mountpoint));
  const figures = `${name}: ${spaceWords(filesystem)}${rest}`;
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

/** The bar, and below it a line for each kind of mark in it. One line where there are no thresholds. */
export function diskBar(figures: BarFigures, screen: Screen): readonly string[] {
  const { lowPercent: low, highPercent: high, evictions = [] } = figures;
  const glyphs = screen.unicode ? UNICODE : ASCII;
  // The indentation and both ends.
  const room = (screen.width ?? 80) - 4;
  const width = Math.max(WIDTH_MINIMUM, Math.min(WIDTH_MAXIMUM, room));
  const bar = barText(figures, width, screen);
  if (low === null || high === null) return [bar];
  // The signals that are met at a mark.
  const byPercent = Map.groupBy(evictions, ({ usedPercent }) => usedPercent);
  return [
    bar,
    paint(screen, "dim", `${glyphs.threshold} low ${low}%, high ${high}%`),
    ...Array.from(byPercent, ([percent, marks]) => {
      const isMet = marks.some(({ met }) => met);
      const signals = marks.map(({ signal }) => signal).join(", ");
      const words = `${glyphs.eviction} ${percent}% eviction: ${signals}${isMet ? ", met" : ""}`;
      return paint(screen, isMet ? "red" : "dim", words);
    }),
  ];
}

const UNICODE = { full: "█", empty: "░", threshold: "│", eviction: "┊", open: "▕", close: "▏" };
const ASCII = { full: "#", empty: ".", threshold: "|", eviction: ":", open: "[", close: "]" };

function barText(figures: BarFigures, width: number, screen: Screen): string {
  const { usedPercent, lowPercent, highPercent, evictions = [] } = figures;
  const glyphs = screen.unicode ? UNICODE : ASCII;
  const used = cells(usedPercent, width);
  const thresholds = [lowPercent, highPercent].map((it) => it !== null && cellOf(it, width));
  const marks = evictions.map((mark) => cellOf(mark.usedPercent, width));
  const drawn = Array.from({ length: width }, (_, cell) => {
    if (thresholds.includes(cell)) return glyphs.threshold;
    if (marks.includes(cell)) return glyphs.eviction;
    return paint(screen, colourOf(figures), cell < used ? glyphs.full : glyphs.empty);
  });
  return glyphs.open + joinedColours(drawn.join("")) + glyphs.close;
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

/** Full cells; anything used shows at least one, and only a full disk fills the last one. */
function cells(percent: number, width: number): number {
  if (percent <= 0) return 0;
  if (percent >= 100) return width;
  return Math.min(width - 1, Math.max(1, Math.round((percent / 100) * width)));
}

const cellOf = (percent: number, width: number): number =>
  Math.max(0, Math.min(width - 1, Math.round((percent / 100) * width)));

/** What fills a disk, as one clause: for event `ImageGCFutile` and for `plan`. */
export function breakdownWords(it: DiskBreakdown): string {
  const parts = present([
    `${it.containersBytes === null ? "images and container layers" : "images"} about ${humanBytes(it.imagesBytes)}`,
    it.containersBytes !== null && `containers ${humanBytes(it.containersBytes)}`,
    it.logsBytes !== null && `pod logs ${humanBytes(it.logsBytes)}`,
    `other data ${humanBytes(it.otherBytes)}`,
  ]);
  return `${parts.join(", ")} of ${humanBytes(it.capacityBytes - it.availableBytes)} used`;
}
