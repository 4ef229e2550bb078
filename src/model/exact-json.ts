/** JSON with exact integers that is safe to print: a size may exceed a number, and a name may contain anything. */

declare global {
  interface JSON {
    /** Writes text verbatim; lib.esnext does not declare it yet. */
    rawJSON(text: string): unknown;
  }
}

/**
 * DEL, C1, line and paragraph separators, marks that change the reading direction, zero-width characters and the byte
 * order mark: sent to a terminal, they may show what is not there. None of them is a line end.
 */
export const MISLEADING =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** `indent` 0 gives one line. Misleading characters are escaped, so nothing is lost. */
export const exactJson = (value: unknown, indent = 0): string =>
  escaped(JSON.stringify(value, (field, held: unknown) => exact(field, held), indent) ?? "null");

/** Escapes misleading characters as in a string of JSON. */
export const escaped = (text: string): string =>
  text.replace(
    MISLEADING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

function exact(field: string, held: unknown): unknown {
  if (typeof held === "bigint") return JSON.rawJSON(held.toString());
  if (held instanceof Map || held instanceof Set)
    throw new TypeError(`a Map or Set reached a JSON document in ${field}`);
  return held;
}

/**
 * On one line, for a row of the state file: an integer that a number cannot hold exactly is a string of digits, so that
 * any JSON reader can read it.
 */
export const rowJson = (value: unknown): string =>
  JSON.stringify(value, (_, held: unknown) => {
    if (typeof held !== "bigint") return held;
    const number = Number(held);
    return Number.isSafeInteger(number) ? number : held.toString();
  });
