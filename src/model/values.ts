/** Small questions about plain values: whether one is a map, which of two comes first, what a text is without its blanks. */

/** What JSON and YAML call an object or map. */
export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** For sorting, the smaller one first. */
export const compared = <Value extends bigint | number | string>(
  one: Value,
  other: Value,
): number => (one === other ? 0 : one < other ? -1 : 1);

/** Cuts characters off both ends of text that anybody may have written, in time linear in it. */
// A pattern with a star before its end tries every such character as the first one, and takes minutes for some thousand.
export function trimmed(text: string, leading: string, trailing = leading): string {
  let start = 0;
  let end = text.length;
  while (start < end && leading.includes(text.charAt(start))) start += 1;
  while (end > start && trailing.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** Without spaces and tabs at both ends; no other white space is cut. */
export const withoutBlanks = (text: string): string => trimmed(text, " \t");
