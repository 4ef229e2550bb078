/** Aligned columns, fitted to the terminal by truncating those that allow it. */

import { type Colour, type Cut, cutFor, fitted, padded, paint, type Screen } from "../terminal.ts";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Minimum width on a narrow terminal; absent: never truncated. */
  readonly minimumWidth?: number;
  readonly cut?: Cut["at"];
  /** Omitted if every row has a dash in it. */
  readonly optional?: true;
}

export type Row = readonly string[];

const GAP = "  ";

/** Lines of text, titles first. Callers clean the cells, which may contain colours. */
export function tableLines(
  all: readonly Column[],
  allRows: readonly Row[],
  screen: Screen,
): readonly string[] {
  const isShown = (_: unknown, at: number): boolean =>
    all[at]?.optional !== true || allRows.some((row) => row[at] !== "-");
  const columns = all.filter(isShown);
  const rows = allRows.map((row) => row.filter(isShown));
  const widths = fittedWidths(columns, rows, screen.width);
  const line = (cells: Row): string =>
    columns
      .map((column, index) => {
        const width = widths[index] ?? 0;
        const text = fitted(cells[index] ?? "", width, cutFor(screen, column.cut));
        return padded(text, width, column.align);
      })
      .join(GAP)
      .trimEnd();
  const title = paint(screen, "bold", line(columns.map((column) => column.title)));
  return [title, ...rows.map(line)];
}

function fittedWidths(
  columns: readonly Column[],
  rows: readonly Row[],
  available: number | null,
): readonly number[] {
  const widths = columns.map((column, index) =>
    rows.reduce(
      (widest, row) => Math.max(widest, Bun.stringWidth(row[index] ?? "")),
      Bun.stringWidth(column.title),
    ),
  );
  if (available === null) return widths;
  const room = available - GAP.length * (columns.length - 1);
  return shrunk(columns, widths, room);
}

/**
 * Truncates the widest column that allows it, until the table fits or none does. Columns truncated in the
 * middle are names, which readers look for: they come last.
 */
function shrunk(
  columns: readonly Column[],
  natural: readonly number[],
  room: number,
): readonly number[] {
  const widths = [...natural];
  let excess = widths.reduce((sum, width) => sum + width, 0) - room;
  for (const areNames of [false, true]) {
    const giving = columns.flatMap(({ minimumWidth = Infinity, cut }, index) =>
      (cut === "middle") === areNames ? [{ minimumWidth, index }] : [],
    );
    while (excess > 0) {
      const [widest] = giving
        .filter(({ minimumWidth, index }) => (widths[index] ?? 0) > minimumWidth)
        .toSorted((one, other) => (widths[other.index] ?? 0) - (widths[one.index] ?? 0));
      if (widest === undefined) break;
      widths[widest.index] = (widths[widest.index] ?? 0) - 1;
      excess -= 1;
    }
  }
  return widths;
}

/** Wraps a sentence to the terminal's width, each line with `indent`. */
export function wrapped(text: string, screen: Screen, indent = ""): readonly string[] {
  if (screen.width === null) return [indent + text];
  const lines = Bun.wrapAnsi(text, screen.width - Bun.stringWidth(indent)).split("\n");
  return lines.map((line) => indent + line);
}

/** The same in a colour. */
export const painted = (screen: Screen, colour: Colour, text: string): readonly string[] =>
  wrapped(text, screen).map((line) => paint(screen, colour, line));
