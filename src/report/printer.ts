/** Prints reports: wrapped sentences, tables fitted to the width, and long lists shortened to the rows that matter. */

import type { runtimeJson } from "./document.ts";
import {
  andMore,
  clean,
  type Colour,
  cutFor,
  fitted,
  padded,
  paint,
  type Screen,
  type Truncation,
} from "./terminal.ts";
import { counted, secondOf } from "./words.ts";

/** Callers clean the cells, which may contain colours. */
export interface Column<Item> {
  readonly title: string;
  readonly cell: (item: Item) => string;
  readonly align?: "left" | "right";
  /** Minimum width on a narrow terminal; absent: never truncated. */
  readonly minimumWidth?: number;
  readonly cut?: Truncation["at"];
  /** Omitted if every row has a dash in it. */
  readonly optional?: true;
}

export type Columns<Item> = readonly Column<Item>[];

export const column = <Item>(
  title: string,
  cell: (item: Item) => string,
  form: Omit<Column<Item>, "title" | "cell"> = {},
): Column<Item> => ({ title, cell, ...form });

export const RIGHT = { align: "right" } as const;
export const OPTIONAL = { align: "right", optional: true } as const;
export const NAME = { minimumWidth: 16, cut: "middle" } as const;

interface TableOptions<Item> {
  /** Groups the hidden rows of a long table; absent: shows every row. */
  readonly groupOf?: (item: Item) => string;
  /** Rows that are shown first; absent: none. */
  readonly matters?: (item: Item) => boolean;
  readonly indent?: string;
}

interface Group {
  readonly title: string;
  readonly names: readonly string[];
}

export class Printer {
  readonly screen: Screen;
  readonly #lines: string[] = [];

  constructor(screen: Screen) {
    this.screen = screen;
  }

  /** As it is, however long. */
  line(line: string, colour?: Colour): void {
    this.#lines.push(colour === undefined ? line : paint(this.screen, colour, line));
  }

  /** The runtime, and when it was read. */
  node({
    runtime: it,
    observedAt,
  }: {
    readonly runtime: ReturnType<typeof runtimeJson>;
    readonly observedAt: string;
  }): void {
    const at = `${it.name} ${it.version} at ${it.endpoint}, as of ${secondOf(observedAt)}`;
    this.line(clean(at), "dim");
  }

  /** Several gaps in a row are one. */
  gap(): void {
    this.line("");
  }

  /** Wrapped to the width, each line with the indentation. */
  say(sentence: string, colour?: Colour, indent = ""): void {
    for (const line of wrapped(sentence, this.screen, indent)) this.line(line, colour);
  }

  /** Nothing without items. */
  table<Item>(
    columns: Columns<Item>,
    items: readonly Item[],
    { groupOf, matters, indent = "" }: TableOptions<Item> = {},
  ): void {
    if (items.length === 0) return;
    const { width } = this.screen;
    const screen = { ...this.screen, width: width === null ? null : width - indent.length };
    const { shown, hidden } =
      groupOf === undefined ? { shown: items, hidden: [] } : shortened(items, this.screen, matters);
    for (const line of tableLines(columns, shown, screen)) this.line(indent + line);
    this.hidden(hidden, groupOf ?? (() => ""), indent);
  }

  /** How many rows are hidden, how to see them, and what they have in common. */
  hidden<Item>(items: readonly Item[], groupOf: (item: Item) => string, indent = ""): void {
    if (items.length === 0) return;
    const groups = grouped(items, groupOf, () => "");
    const digits = String(groups[0]?.names.length ?? 0).length;
    this.line(`${indent}${counted(items.length, "more row")} (--all or -o json shows all):`, "dim");
    for (const { title, names } of groups)
      this.line(`${indent}  ${String(names.length).padStart(digits)}  ${title}`, "dim");
  }

  /** `  14  in use: redis:7, app:1.2, 12 more`: by title, with the names that fit, or all with `--all`. */
  groups<Item>(
    items: readonly Item[],
    titleOf: (item: Item) => string,
    nameOf: (item: Item) => string,
  ): void {
    const groups = grouped(items, titleOf, nameOf);
    const digits = Math.max(2, ...groups.map(({ names }) => String(names.length).length));
    for (const { title, names } of groups) {
      const head = `  ${String(names.length).padStart(digits)}  ${title}: `;
      if (this.screen.all !== true)
        this.line(head + paint(this.screen, "dim", namesThatFit(names, head, this.screen)));
      else if (this.screen.width !== null)
        this.say(head.trimStart() + names.join(", "), undefined, "  ");
      // One line each in a pipe, for grep.
      else
        for (const line of [head.trimEnd(), ...names.map((it) => `      ${it}`)]) this.line(line);
    }
  }

  /** No two empty lines in a row, none at the start or end, one final newline. */
  text(): string {
    const lines = this.#lines.filter((line, at) => line !== "" || this.#lines[at - 1] !== "");
    return `${lines.join("\n").replace(/^\n|\n+$/g, "")}\n`;
  }
}

const GAP = "  ";

/** Titles first. */
export function tableLines<Item>(
  all: Columns<Item>,
  items: readonly Item[],
  screen: Screen,
): readonly string[] {
  const shown = all
    .map((it) => ({ ...it, cells: items.map(it.cell) }))
    .filter(({ optional, cells }) => optional !== true || cells.some((cell) => cell !== "-"));
  const natural = shown.map(({ title, cells }) =>
    cells.reduce((most, cell) => Math.max(most, Bun.stringWidth(cell)), Bun.stringWidth(title)),
  );
  const widths =
    screen.width === null
      ? natural
      : shrunk(shown, natural, screen.width - GAP.length * (shown.length - 1));
  const line = (textOf: (it: (typeof shown)[number]) => string): string =>
    shown
      .map((it, index) => {
        const width = widths[index] ?? 0;
        return padded(fitted(textOf(it), width, cutFor(screen, it.cut)), width, it.align);
      })
      .join(GAP)
      .trimEnd();
  return [
    paint(
      screen,
      "bold",
      line(({ title }) => title),
    ),
    ...items.map((_, row) => line(({ cells }) => cells[row] ?? "")),
  ];
}

/**
 * Truncates the widest column that allows it, until the table fits or none does. Columns truncated in the
 * middle are names, which readers look for: they come last.
 */
function shrunk(
  columns: readonly Pick<Column<never>, "minimumWidth" | "cut">[],
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
export const ROWS_SHOWN = 50;

/** Of many items, those that matter and the first ones, in their order. */
export function shortened<Item>(
  items: readonly Item[],
  screen: Screen,
  matters: (item: Item) => boolean = () => false,
): { readonly shown: readonly Item[]; readonly hidden: readonly Item[] } {
  if (screen.all === true || items.length <= ROWS_SHOWN) return { shown: items, hidden: [] };
  const [first, others] = [items.filter(matters), items.filter((item) => !matters(item))];
  const chosen = new Set([...first, ...others].slice(0, ROWS_SHOWN));
  return {
    shown: items.filter((item) => chosen.has(item)),
    hidden: items.filter((item) => !chosen.has(item)),
  };
}

/** By title, largest group first, ties by title. */
const grouped = <Item>(
  items: readonly Item[],
  titleOf: (item: Item) => string,
  nameOf: (item: Item) => string,
): readonly Group[] =>
  Array.from(Map.groupBy(items, titleOf), ([title, members]) => ({
    title,
    names: members.map(nameOf),
  })).toSorted(
    (one, other) => other.names.length - one.names.length || (one.title < other.title ? -1 : 1),
  );

/** More are of no use in one line. */
const NAMES_SHOWN = 10;

/** The count is before them, so what has no room is only cut. */
function namesThatFit(names: readonly string[], head: string, screen: Screen): string {
  const words = andMore(names.slice(0, NAMES_SHOWN), names.length);
  if (screen.width === null) return words;
  return fitted(words, screen.width - Bun.stringWidth(head), cutFor(screen));
}

/** Wraps a sentence to the terminal's width, each line with `indent`. */
export function wrapped(sentence: string, screen: Screen, indent = ""): readonly string[] {
  if (screen.width === null) return [indent + sentence];
  const lines = Bun.wrapAnsi(sentence, screen.width - Bun.stringWidth(indent)).split("\n");
  return lines.map((line) => indent + line);
}
