/** Kept things in groups: how many share a reason, and the names of some. */

import { cutFor, displayWidth, fitted, paint, type Screen } from "../terminal.ts";

export interface Group {
  readonly title: string;
  readonly names: readonly string[];
}

/** By title, the largest group first, equal ones by title. */
export function grouped<Thing>(
  things: readonly Thing[],
  titleOf: (thing: Thing) => string,
  nameOf: (thing: Thing) => string,
): readonly Group[] {
  const names = new Map<string, string[]>();
  for (const thing of things) {
    const title = titleOf(thing);
    const known = names.get(title);
    if (known === undefined) names.set(title, [nameOf(thing)]);
    else known.push(nameOf(thing));
  }
  return Array.from(names, ([title, members]) => ({ title, names: members })).toSorted(
    (one, other) => other.names.length - one.names.length || compared(one.title, other.title),
  );
}

const compared = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** `  14  in use: redis:7, app:1.2, … 12 more`, as many names as fit; all of them where there is no terminal. */
export function groupLines(groups: readonly Group[], screen: Screen): readonly string[] {
  const digits = Math.max(2, ...groups.map((group) => String(group.names.length).length));
  return groups.map((group) => {
    const head = `  ${String(group.names.length).padStart(digits)}  ${group.title}: `;
    return head + paint(screen, "dim", namesThatFit(group.names, head, screen));
  });
}

function namesThatFit(names: readonly string[], head: string, screen: Screen): string {
  if (screen.width === null) return names.join(", ");
  const room = screen.width - displayWidth(head);
  let text = "";
  for (const [index, name] of names.entries()) {
    const rest = names.length - index - 1;
    const tail = rest === 0 ? "" : `, ${rest} more`;
    const longer = text === "" ? name : `${text}, ${name}`;
    if (displayWidth(longer + tail) <= room) text = longer;
    else if (text !== "") return `${text}, ${rest + 1} more`;
    else return fitted(name, room - tail.length, cutFor(screen, "middle")) + tail;
  }
  return text;
}
