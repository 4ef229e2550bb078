/** Tables for terminals: aligned columns fitted to the width, and long lists shortened to the rows that matter. */

import type { RuntimeInfo } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { counted, secondOf } from "./bytes.ts";
import {
  clean,
  type Colour,
  type Cut,
  cutFor,
  fitted,
  padded,
  paint,
  type Screen,
} from "./terminal.ts";

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

export interface ItemColumn<Item, Cell = string> extends Column {
  readonly cell: (item: Item) => Cell;
}

export const column = <Item, Cell = string>(
  title: string,
  cell: (item: Item) => Cell,
  form: Omit<Column, "title"> = {},
): ItemColumn<Item, Cell> => ({ title, cell, ...form });

export const RIGHT = { align: "right" } as const;
export const NAME = { minimumWidth: 16, cut: "middle" } as const;

/** Rows made from items: one cell per column. */
export interface ItemTable<Item> {
  readonly columns: readonly ItemColumn<Item>[];
  readonly items: readonly Item[];
  /** Groups the hidden rows of a long table; absent: shows every row. */
  readonly groupOf?: (item: Item) => string;
  /** Rows that are shown first; absent: none. */
  readonly matters?: (item: Item) => boolean;
}

export function itemLines<Item>(table: ItemTable<Item>, screen: Screen): readonly string[] {
  const { columns, items, groupOf = () => "", matters } = table;
  const { shown, hidden } =
    table.groupOf === undefined ? { shown: items, hidden: [] } : shortened(items, screen, matters);
  const rows = shown.map((item) => columns.map(({ cell }) => cell(item)));
  return [...tableLines(columns, rows, screen), ...hiddenLines(hidden, groupOf, screen)];
}

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
  const natural = columns.map(({ title }, index) =>
    Math.max(
      Bun.stringWidth(title),
      rows.reduce((widest, row) => Math.max(widest, Bun.stringWidth(row[index] ?? "")), 0),
    ),
  );
  const widths =
    screen.width === null
      ? natural
      : shrunk(columns, natural, screen.width - GAP.length * (columns.length - 1));
  const line = (cells: Row): string =>
    columns
      .map(({ cut, align }, index) => {
        const width = widths[index] ?? 0;
        return padded(fitted(cells[index] ?? "", width, cutFor(screen, cut)), width, align);
      })
      .join(GAP)
      .trimEnd();
  return [paint(screen, "bold", line(columns.map(({ title }) => title))), ...rows.map(line)];
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

/** Maximum rows without `--all`. */
const ROWS_SHOWN = 50;

/** Of many items, those that matter and the first ones, in their order. */
export function shortened<Item>(
  items: readonly Item[],
  screen: Screen,
  matters: (item: Item) => boolean = () => false,
): { readonly shown: readonly Item[]; readonly hidden: readonly Item[] } {
  if (screen.all === true || items.length <= ROWS_SHOWN) return { shown: items, hidden: [] };
  const first = new Set(
    items
      .map((item, index) => ({ index, weight: matters(item) ? 0 : 1 }))
      .toSorted((one, other) => one.weight - other.weight || one.index - other.index)
      .slice(0, ROWS_SHOWN)
      .map(({ index }) => index),
  );
  return {
    shown: items.filter((_, index) => first.has(index)),
    hidden: items.filter((_, index) => !first.has(index)),
  };
}

/** How many rows are hidden, how to see them, and what they have in common. */
export function hiddenLines<Item>(
  hidden: readonly Item[],
  groupOf: (item: Item) => string,
  screen: Screen,
): readonly string[] {
  if (hidden.length === 0) return [];
  const groups = grouped(hidden, groupOf, () => "");
  const digits = String(groups[0]?.names.length ?? 0).length;
  return [
    `${counted(hidden.length, "more row")} (--all or -o json shows all):`,
    ...groups.map(({ title, names }) => `  ${String(names.length).padStart(digits)}  ${title}`),
  ].map((line) => paint(screen, "dim", line));
}

interface Group {
  readonly title: string;
  readonly names: readonly string[];
}

/** By title, largest group first, ties by title. */
export function grouped<Item>(
  items: readonly Item[],
  titleOf: (item: Item) => string,
  nameOf: (item: Item) => string,
): readonly Group[] {
  return Array.from(Map.groupBy(items, titleOf), ([title, members]) => ({
    title,
    names: members.map(nameOf),
  })).toSorted(
    (one, other) => other.names.length - one.names.length || (one.title < other.title ? -1 : 1),
  );
}

/** `  14  in use: redis:7, app:1.2, 12 more`: the names that fit, or all with `--all`. */
export function groupLines(groups: readonly Group[], screen: Screen): readonly string[] {
  const digits = Math.max(2, ...groups.map((group) => String(group.names.length).length));
  return groups.flatMap((group) => {
    const head = `  ${String(group.names.length).padStart(digits)}  ${group.title}: `;
    if (screen.all !== true)
      return [head + paint(screen, "dim", namesThatFit(group.names, head, screen))];
    // One line each in a pipe, for grep.
    return screen.width === null
      ? [head.trimEnd(), ...group.names.map((name) => `      ${name}`)]
      : wrapped(head.trimStart() + group.names.join(", "), screen, "  ");
  });
}

/** Maximum names of a group if no width limits them. */
const NAMES_SHOWN = 10;

function namesThatFit(names: readonly string[], head: string, screen: Screen): string {
  const tail = (rest: number): string => (rest <= 0 ? "" : `, ${rest} more`);
  if (screen.width === null)
    return names.slice(0, NAMES_SHOWN).join(", ") + tail(names.length - NAMES_SHOWN);
  const room = screen.width - Bun.stringWidth(head);
  let fitting = "";
  for (const [index, name] of names.entries()) {
    const rest = tail(names.length - index - 1);
    const longer = fitting === "" ? name : `${fitting}, ${name}`;
    if (Bun.stringWidth(longer + rest) <= room) fitting = longer;
    else if (fitting !== "") return fitting + tail(names.length - index);
    else return fitted(name, room - rest.length, cutFor(screen, "middle")) + rest;
  }
  return fitting;
}

/** Wraps a sentence to the terminal's width, each line with `indent`. */
export function wrapped(sentence: string, screen: Screen, indent = ""): readonly string[] {
  if (screen.width === null) return [indent + sentence];
  const lines = Bun.wrapAnsi(sentence, screen.width - Bun.stringWidth(indent)).split("\n");
  return lines.map((line) => indent + line);
}

/** The same in a colour. */
export const painted = (screen: Screen, colour: Colour, sentence: string): readonly string[] =>
  wrapped(sentence, screen).map((line) => paint(screen, colour, line));

/** The runtime, and when it was read. */
export const nodeLine = (it: RuntimeInfo, observedAt: Instant, screen: Screen): string =>
  paint(
    screen,
    "dim",
    clean(`${it.name} ${it.version} at ${it.endpoint}, as of ${secondOf(observedAt)}`),
  );

/** Joins lines: no two empty ones in a row, none at the end, one final newline. */
export function text(lines: readonly string[]): string {
  const kept = lines.filter((line, index) => line !== "" || (index > 0 && lines[index - 1] !== ""));
  while (kept.at(-1) === "") kept.pop();
  return `${kept.join("\n")}\n`;
}
