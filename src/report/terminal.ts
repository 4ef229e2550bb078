/** Text for a terminal: without control characters, measured in columns, with colours if supported. */

import { MISLEADING } from "../model/exact-json.ts";

/** Output device of a text. */
export interface Screen {
  /** Columns, to which sentences are wrapped; `null`: not a terminal. */
  readonly width: number | null;
  readonly colour: boolean;
  /** Whether it shows block characters and dashes; else ASCII. */
  readonly unicode: boolean;
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
