/** Describes values in messages. */

const SHOWN_MAX = 60;

/** Text in quotes, shortened, so that a huge or hostile value does not fill the screen. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);

/** A short description of a value in a file. */
export function described(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value === "number" || typeof value === "boolean")
    return String(value);
  return Array.isArray(value) ? "a list" : "a map";
}
