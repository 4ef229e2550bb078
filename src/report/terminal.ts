/** Text for a terminal: without control characters, wrapped, in tables, with colours if supported. */

import { MISLEADING } from "../model/exact-json.ts";

/** Output device of a text. */
export interface Screen {
  /** Columns, to which sentences are wrapped; `null`: not a terminal. */
  readonly width: number | null;
  readonly colour: boolean;
}

export interface ScreenFacts {
  readonly isTerminal: boolean;
  readonly columns: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const WIDTH_DEFAULT = 80;
/** Narrower lines are unreadable; the terminal wraps them instead. */
const WIDTH_MINIMUM = 40;

export function screenOf(facts: ScreenFacts): Screen {
  const environment = facts.environment;
  const dumb = environment["TERM"] === "dumb";
  return {
    width: facts.isTerminal ? Math.max(WIDTH_MINIMUM, facts.columns || WIDTH_DEFAULT) : null,
    colour: facts.isTerminal && !dumb && (environment["NO_COLOR"] ?? "") === "",
  };
}

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof COLOURS;

export const paint = (screen: Screen, colour: Colour, text: string): string =>
  screen.colour && text !== "" ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text;

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const C0 = /[\u0000-\u001f]/g;

/** Makes text of the runtime or of a file safe to print: strips control characters, collapses white space. */
export const clean = (text: string): string =>
  text
    .replace(/[\t\r\n]+/g, " ")
    .replace(C0, "")
    .replace(MISLEADING, "");

/** The texts of a list, without those that a condition omits. */
export const present = (texts: readonly (string | false)[]): readonly string[] =>
  texts.filter((text) => text !== false);

/** The first texts of a list, and how many more there are: `a, b, 2 more`. */
export const andMore = (first: readonly string[], count: number, joint = ", "): string =>
  first.join(", ") + (count > first.length ? `${joint}${count - first.length} more` : "");

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
    return cells.map((it) => {
      const gap = " ".repeat(width - Bun.stringWidth(it));
      return align === "right" ? gap + it : it + gap;
    });
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
