/** Prints reports: wrapped sentences, and tables in their natural width. */

import type { runtimeJson } from "./document.ts";
import { clean, type Colour, padded, paint, type Screen } from "./terminal.ts";
import { secondOf } from "./words.ts";

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
  table<Item>(columns: Columns<Item>, items: readonly Item[], indent = ""): void {
    if (items.length === 0) return;
    for (const line of tableLines(columns, items, this.screen)) this.line(indent + line);
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
    .map(({ title, cell, ...it }) => ({ ...it, cells: [title, ...items.map(cell)] }))
    .filter(({ optional, cells }) => optional !== true || cells.slice(1).some((it) => it !== "-"))
    .map((it) => ({
      ...it,
      width: it.cells.reduce((most, cell) => Math.max(most, Bun.stringWidth(cell)), 0),
    }));
  const [titles = "", ...rows] = ["", ...items].map((_, row) =>
    shown
      .map(({ cells, width, align }) => padded(cells[row] ?? "", width, align))
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
