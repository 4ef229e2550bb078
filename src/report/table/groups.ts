/** Shortens long tables to the rows that matter, and groups of the rest with counts and some names. */

import { counted } from "../bytes.ts";
import { cutFor, fitted, paint, type Screen } from "../terminal.ts";
import { wrapped } from "./table.ts";

/** Maximum rows without `--all`. */
const ROWS_SHOWN = 50;
/** Maximum names of a group if no width limits them. */
const NAMES_SHOWN = 10;

export interface Shortened<Item> {
  readonly shown: readonly Item[];
  readonly hidden: readonly Item[];
}

/** Of many items, those that matter and the first ones, in their order. */
export function shortened<Item>(
  items: readonly Item[],
  screen: Screen,
  matters: (item: Item) => boolean = () => false,
): Shortened<Item> {
  if (screen.all === true || items.length <= ROWS_SHOWN) return { shown: items, hidden: [] };
  const first = new Set(
    [...items.keys()]
      .toSorted((one, other) => weight(items[one]) - weight(items[other]) || one - other)
      .slice(0, ROWS_SHOWN),
  );
  function weight(item: Item | undefined): number {
    return item !== undefined && matters(item) ? 0 : 1;
  }
  return {
    shown: items.filter((_, index) => first.has(index)),
    hidden: items.filter((_, index) => !first.has(index)),
  };
}

/** How many rows are hidden, how to see them, and what they have in common. */
export function hiddenLines<Item>(
  hidden: readonly Item[],
  titleOf: (item: Item) => string,
  screen: Screen,
): readonly string[] {
  if (hidden.length === 0) return [];
  const groups = grouped(hidden, titleOf, () => "");
  const digits = String(groups[0]?.names.length ?? 0).length;
  return [
    `${counted(hidden.length, "more row", "more rows")} (--all or -o json shows all):`,
    ...groups.map(({ title, names }) => `  ${String(names.length).padStart(digits)}  ${title}`),
  ].map((line) => paint(screen, "dim", line));
}

export interface Group {
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

function namesThatFit(names: readonly string[], head: string, screen: Screen): string {
  if (screen.width === null) return someNames(names);
  const room = screen.width - Bun.stringWidth(head);
  let text = "";
  for (const [index, name] of names.entries()) {
    const rest = names.length - index - 1;
    const tail = rest === 0 ? "" : `, ${rest} more`;
    const longer = text === "" ? name : `${text}, ${name}`;
    if (Bun.stringWidth(longer + tail) <= room) text = longer;
    else if (text !== "") return `${text}, ${rest + 1} more`;
    else return fitted(name, room - tail.length, cutFor(screen, "middle")) + tail;
  }
  return text;
}

const someNames = (names: readonly string[]): string =>
  names.length <= NAMES_SHOWN
    ? names.join(", ")
    : `${names.slice(0, NAMES_SHOWN).join(", ")}, ${names.length - NAMES_SHOWN} more`;
