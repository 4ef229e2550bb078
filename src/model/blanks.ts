/** Cuts blanks off text that anybody may have written. */

const isBlank = (character: string | undefined): boolean => character === " " || character === "\t";

/** Spaces and tabs at both ends. A pattern with a star before its end tries every blank as a start, and takes minutes for some thousand. */
export function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text[start])) start += 1;
  while (end > start && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}
