// JSON with exact integers: a size may exceed what a number holds, and must not be rounded on the way.

declare global {
  interface JSON {
    /** Text that is written as it stands; lib.esnext does not know it yet. */
    rawJSON(text: string): unknown;
  }
}

/** Indented, with a newline at its end. Characters that could mislead a terminal are escaped, so that nothing is lost. */
export function exactJson(value: unknown): string {
  const text = JSON.stringify(
    value,
    (_, held: unknown) => (typeof held === "bigint" ? JSON.rawJSON(held.toString()) : held),
    1,
  );
  return `${text.replace(misleading, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`;
}

/** Integers that a number cannot hold become bigint. Throws `SyntaxError`. */
export function parseExactJson(text: string): unknown {
  const revive = (_: string, held: unknown, context?: { readonly source?: string }): unknown => {
    if (typeof held !== "number" || Number.isSafeInteger(held)) return held;
    const source = context?.source ?? "";
    return /^-?\d+$/.test(source) ? BigInt(source) : held;
  };
  return JSON.parse(text, revive);
}

// Control characters beyond those that JSON escapes anyway, and what turns the direction of writing.
const misleading = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
