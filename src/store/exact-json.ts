// JSON with exact integers: a size may exceed what a number holds, and must not be rounded on the way.

declare global {
  interface JSON {
    /** Text that is written as it stands; lib.esnext does not know it yet. */
    rawJSON(text: string): unknown;
  }
}

/** Indented, with a newline at its end. Characters that could mislead a terminal are escaped, so that nothing is lost. */
export function exactJson(value: unknown): string {
  const text = JSON.stringify(value, raw, 1);
  return `${text.replace(misleading, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`;
}

/** On one line, for a row of the state file: what a number does not hold exactly stands as its digits, so that any reader of JSON reads it. */
export const rowJson = (value: unknown): string =>
  JSON.stringify(value, (_, held: unknown) => {
    if (typeof held !== "bigint") return held;
    const number = Number(held);
    return Number.isSafeInteger(number) ? number : held.toString();
  });

const raw = (_: string, held: unknown): unknown =>
  typeof held === "bigint" ? JSON.rawJSON(held.toString()) : held;

/** Integers that a number cannot hold become bigint. Throws `SyntaxError`. */
export function parseExactJson(text: string): unknown {
  // What exceeds 2^53 has sixteen digits; looking at each value takes several times as long as reading the text.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const revive = (_: string, held: unknown, context?: { readonly source?: string }): unknown => {
    if (typeof held !== "number" || Number.isSafeInteger(held)) return held;
    const source = context?.source ?? "";
    return /^-?\d+$/.test(source) ? BigInt(source) : held;
  };
  return JSON.parse(text, revive);
}

// Control characters beyond those that JSON escapes anyway, and what turns the direction of writing.
const misleading = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
