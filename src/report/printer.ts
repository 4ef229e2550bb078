/** Prints reports: wrapped sentences, and tables in their natural width. */

import { type Colour, padded, paint, type Screen } from "./terminal.ts";

/** Callers clean the cells, which may contain colours. */
export interface Column<Item> {
  readonly title: string;
  readonly cell: (item: Item) => string;
  readonly align?: "left" | "right";
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

export interface TableForm {
  readonly indent?: string;
  /** Words before a row, from which on the rows are dim. */
  readonly stop?: { readonly at: number; readonly words: string };
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

  /** Several gaps in a row are one. */
  gap(): void {
    this.line("");
  }

  /** Wrapped to the width, each line with the indentation. */
  say(sentence: string, colour?: Colour, indent = ""): void {
    for (const line of wrapped(sentence, this.screen, indent)) this.line(line, colour);
  }

  /** Nothing without items. */
  table<Item>(columns: Columns<Item>, items: readonly Item[], form: TableForm = {}): void {
    if (items.length === 0) return;
    const { indent = "", stop } = form;
    const [titles = "", ...rows] = tableLines(columns, items, this.screen);
    this.line(indent + titles);
    for (const [index, row] of rows.entries()) {
      if (index === stop?.at) this.line(`---- ${stop.words} ----`, "cyan");
      this.line(indent + row, stop !== undefined && index >= stop.at ? "dim" : undefined);
    }
  }

  /** No two empty lines in a row, none at the start or end, one final newline. */
  text(): string {
    const lines = this.#lines.filter((line, at) => line !== "" || this.#lines[at - 1] !== "");
    return `${lines.join("\n").replace(/^\n|\n+$/g, "")}\n`;
  }
}

const GAP = "  ";

/** Those that are not empty. */
export const shownColumns = <Item>(all: Columns<Item>, items: readonly Item[]): Columns<Item> =>
  all.filter(({ optional, cell }) => optional !== true || items.some((it) => cell(it) !== "-"));

/** Titles first. */
export function tableLines<Item>(
  all: Columns<Item>,
  items: readonly Item[],
  screen: Screen,
): readonly string[] {
  const columns = shownColumns(all, items).map(({ title, cell, align }) => {
    const cells = [title, ...items.map(cell)];
    const width = cells.reduce((most, it) => Math.max(most, Bun.stringWidth(it)), 0);
    return cells.map((it) => padded(it, width, align));
  });
  const [titles = "", ...rows] = ["", ...items].map((_, row) =>
    columns
      .map((cells) => cells[row])
      .join(GAP)
      .trimEnd(),
  );
  return [paint(screen, "bold", titles), ...rows];
}

/** Wraps a sentence to the terminal's width, each line with `indent`. */
export function wrapped(sentence: string, screen: Screen, indent = ""): readonly string[] {
  if (screen.width === null) return [indent + sentence];
  const lines = Bun.wrapAnsi(sentence, screen.width - Bun.stringWidth(indent)).split("\n");
  return lines.map((line) => indent + line);
}
