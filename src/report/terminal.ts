/** Text for a terminal: without control characters, measured in columns, with colours if supported. */

import { MISLEADING } from "../model/exact-json.ts";

/** Output device of a text. */
export interface Screen {
  /** Columns; `null`: not a terminal, so nothing is shortened. */
  readonly width: number | null;
  readonly colour: boolean;
  /** Whether it shows block characters and dashes; else ASCII. */
  readonly unicode: boolean;
  /** `--all`: every row of a long table, instead of the ones that matter and a count of the rest. */
  readonly all?: true;
  /** `-o wide`: additional columns. */
  readonly wide?: true;
}

export interface ScreenFacts {
  readonly isTerminal: boolean;
  readonly columns: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const WIDTH_DEFAULT = 80;
/** Narrower tables are unreadable; the terminal wraps them instead. */
const WIDTH_MINIMUM = 40;

export function screenOf(facts: ScreenFacts): Screen {
  const environment = facts.environment;
  const locale = environment["LC_ALL"] || environment["LC_CTYPE"] || environment["LANG"] || "";
  const dumb = environment["TERM"] === "dumb";
  return {
    width: facts.isTerminal ? Math.max(WIDTH_MINIMUM, facts.columns || WIDTH_DEFAULT) : null,
    colour: facts.isTerminal && !dumb && (environment["NO_COLOR"] ?? "") === "",
    unicode: /utf-?8/i.test(locale) && !dumb,
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

export interface Truncation {
  /** Where to truncate: `middle` keeps both registry and tag of an image. */
  readonly at: "end" | "middle";
  /** `…`, or `...` without Unicode. */
  readonly mark: string;
}

export const cutFor = (screen: Screen, at: Truncation["at"] = "end"): Truncation => ({
  at,
  mark: screen.unicode ? "…" : "...",
});

/** The text, truncated to `columns` columns. */
export function fitted(text: string, columns: number, cut: Truncation): string {
  if (Bun.stringWidth(text) <= columns) return text;
  const room = columns - Bun.stringWidth(cut.mark);
  if (room <= 0) return cut.mark.slice(0, Math.max(0, columns));
  const tail = cut.at === "middle" ? Math.ceil(room / 2) : 0;
  const characters = Array.from(text);
  const head = startOf(characters, room - tail).join("");
  return head + cut.mark + startOf(characters.toReversed(), tail).toReversed().join("");
}

function startOf(characters: readonly string[], columns: number): string[] {
  const taken: string[] = [];
  let width = 0;
  for (const character of characters) {
    width += Bun.stringWidth(character);
    if (width > columns) break;
    taken.push(character);
  }
  return taken;
}

export const padded = (text: string, columns: number, align: "left" | "right" = "left"): string => {
  const gap = " ".repeat(Math.max(0, columns - Bun.stringWidth(text)));
  return align === "left" ? text + gap : gap + text;
};

/** The texts of a list, without those that a condition omits. */
export const present = (texts: readonly (string | false)[]): readonly string[] =>
  texts.filter((text) => text !== false);

/** The first texts of a list, and how many more there are: `a, b, 2 more`. */
export const andMore = (first: readonly string[], count: number, joint = ", "): string =>
  first.join(", ") + (count > first.length ? `${joint}${count - first.length} more` : "");
