/** A filesystem in three lines: its figures, a bar fitted to the width, and its thresholds. */

import type { Thresholds } from "../../model/limits.ts";
import type { DiskUsage, EvictionMark } from "../../model/plan.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import { humanBytes } from "../bytes.ts";
import { clean, type Colour, paint, type Screen } from "../terminal.ts";
import { wrapped } from "./table.ts";

/** With the thresholds in force. */
export function usageLines(usage: DiskUsage, screen: Screen): readonly string[] {
  return [
    ...figuresLines(usage, screen),
    ...diskBar({ ...usage, thresholds: usage }, screen, "  "),
    ...inodesLine(usage.filesystem, usage.inodesUsedPercent),
  ];
}

/** `rest`: what else to say of the filesystem. */
export function figuresLines(
  { filesystem, usedPercent }: Pick<DiskUsage, "filesystem" | "usedPercent">,
  screen: Screen,
  rest = "",
): readonly string[] {
  const { mountpoint, roles, capacityBytes, availableBytes } = filesystem;
  const name = paint(screen, "bold", clean(mountpoint));
  const free = `${humanBytes(availableBytes)} of ${humanBytes(capacityBytes)} free`;
  const figures = `${name}: ${usedPercent}% used, ${free}${rest}`;
  const line = `${figures} (${roles.join(", ")})`;
  // Roles on a line of their own are not cut in two.
  return screen.width === null || Bun.stringWidth(line) <= screen.width
    ? [line]
    : [...wrapped(figures, screen), `  ${roles.join(", ")}`];
}

/** Inodes are shown only if they have a threshold. */
function inodesLine(filesystem: Filesystem, percent: number | null): readonly string[] {
  if (percent === null) return [];
  return [`  inodes: ${percent}% used, ${filesystem.inodesFree} of ${filesystem.inodes} free`];
}

export interface BarFigures {
  readonly usedPercent: number;
  /** `null`: the filesystem has no threshold of its own. */
  readonly thresholds: Thresholds | null;
  readonly evictions?: readonly EvictionMark[];
}

const WIDTH_MAXIMUM = 60;
const WIDTH_MINIMUM = 20;

/** Two lines: the bar, and below it what its marks mean. One line where there are no thresholds. */
export function diskBar(figures: BarFigures, screen: Screen, indent = ""): readonly string[] {
  const width = Math.max(
    WIDTH_MINIMUM,
    Math.min(WIDTH_MAXIMUM, (screen.width ?? 80) - indent.length - 2),
  );
  const bar = `${indent}${barText(figures, width, screen)}`;
  return figures.thresholds === null
    ? [bar]
    : [
        bar,
        `${indent}${legend(figures.thresholds, width, screen)}`,
        ...evictionLines(figures.evictions ?? [], screen).map((line) => `${indent}${line}`),
      ];
}

/** One line for each mark of the bar, with the signals that are met there. */
function evictionLines(marks: readonly EvictionMark[], screen: Screen): readonly string[] {
  const byPercent = Map.groupBy(marks, ({ usedPercent }) => usedPercent);
  return [...byPercent].map(([percent, those]) => {
    const signals = those.map(({ signal }) => signal).join(", ");
    const met = those.some((it) => it.met);
    return paint(
      screen,
      met ? "red" : "dim",
      `${evictionGlyph(screen)} ${percent}% eviction: ${signals}${met ? ", met" : ""}`,
    );
  });
}

const evictionGlyph = (screen: Screen): string => (screen.unicode ? "┊" : ":");

function barText(figures: BarFigures, width: number, screen: Screen): string {
  const used = cells(figures.usedPercent, width);
  const low = figures.thresholds === null ? -1 : mark(figures.thresholds.lowPercent, width);
  const high = figures.thresholds === null ? -1 : mark(figures.thresholds.highPercent, width);
  const glyphs = screen.unicode
    ? { full: "█", empty: "░", mark: "│", open: "▕", close: "▏" }
    : { full: "#", empty: ".", mark: "|", open: "[", close: "]" };
  const evictions = new Set(
    (figures.evictions ?? []).map(({ usedPercent }) => mark(usedPercent, width)),
  );
  let text = "";
  for (let cell = 0; cell < width; cell += 1) {
    if (cell === low || cell === high) text += glyphs.mark;
    else if (evictions.has(cell)) text += evictionGlyph(screen);
    else text += paint(screen, colour(figures), cell < used ? glyphs.full : glyphs.empty);
  }
  return glyphs.open + joinedColours(text) + glyphs.close;
}

// Neighbouring cells of one colour need no escape between them.
const joinedColours = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- our own colours
  text.replace(/\u001b\[0m\u001b\[\d+m/g, "");

function colour(figures: BarFigures): Colour {
  if (figures.thresholds === null) return "blue";
  if (figures.usedPercent >= figures.thresholds.highPercent) return "red";
  return figures.usedPercent >= figures.thresholds.lowPercent ? "yellow" : "green";
}

/** `low 80% ┘ └ high 85%`, each at its mark; where a label has no room there, both in words. */
function legend(thresholds: Thresholds, width: number, screen: Screen): string {
  const [left, right] = screen.unicode ? ["┘", "└"] : ["^", "^"];
  const low = `low ${thresholds.lowPercent}% `;
  const high = ` high ${thresholds.highPercent}%`;
  const lowAt = mark(thresholds.lowPercent, width) + 1;
  const highAt = mark(thresholds.highPercent, width) + 1;
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

const mark = (percent: number, width: number): number =>
  Math.max(0, Math.min(width - 1, Math.round((percent / 100) * width)));
