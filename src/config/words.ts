/** Words for messages: values in quotes, and the known name closest to an unknown one. */

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

/** `; did you mean X?`, or nothing. */
export function suggestion(
  text: string,
  names: Iterable<string>,
  shown = (name: string): string => name,
): string {
  const name = nearest(text, names);
  return name === null ? "" : `; did you mean ${shown(name)}?`;
}

/** Longer texts are not typos, and slow to compare. */
const TEXT_MAX = 64;

/** `null` if none is close: at most one edit per three characters; a swap of neighbours is one edit. */
function nearest(text: string, names: Iterable<string>): string | null {
  if (text.length > TEXT_MAX) return null;
  let best: { readonly name: string; readonly edits: number } | null = null;
  for (const name of names) {
    const edits = editsBetween(text.toLowerCase(), name.toLowerCase());
    const allowed = Math.ceil(Math.max(text.length, name.length) / 3) - 1;
    if (edits <= Math.max(1, Math.min(allowed, 6)) && (best === null || edits < best.edits))
      best = { name, edits };
  }
  return best === null ? null : best.name;
}

function editsBetween(one: string, other: string): number {
  const edits: number[][] = [];
  const before = (row: number, column: number): number => edits[row]?.[column] ?? Infinity;
  for (let row = 0; row <= one.length; row += 1) {
    edits.push([]);
    for (let column = 0; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const fewest = Math.min(
        before(row - 1, column - 1) + (same ? 0 : 1),
        before(row - 1, column) + 1,
        before(row, column - 1) + 1,
        swapped ? before(row - 2, column - 2) + 1 : Infinity,
      );
      edits[row]?.push(row + column === 0 ? 0 : fewest);
    }
  }
  return before(one.length, other.length);
}
