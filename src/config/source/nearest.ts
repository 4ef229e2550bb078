/** Suggests the known name closest to an unknown one. */

/** Longer texts are not typos, and slow to compare. */
const TEXT_MAX = 64;

/** `null` if none is close: at most one edit per three characters; a swap of neighbours is one edit. */
export function nearest(text: string, names: Iterable<string>): string | null {
  if (text.length > TEXT_MAX) return null;
  const wanted = text.toLowerCase();
  let best: { readonly name: string; readonly edits: number } | null = null;
  for (const name of names) {
    const edits = editsBetween(wanted, name.toLowerCase());
    const allowed = Math.ceil(Math.max(wanted.length, name.length) / 3) - 1;
    if (edits <= Math.max(1, Math.min(allowed, 6)) && (best === null || edits < best.edits))
      best = { name, edits };
  }
  return best === null ? null : best.name;
}

function editsBetween(one: string, other: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const next: number[] = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next.push(
        Math.min(
          (last[column - 1] ?? 0) + (same ? 0 : 1),
          (last[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          swapped && row > 1 && column > 1 ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    beforeLast = last;
    last = next;
  }
  return last[other.length] ?? 0;
}

/** ` (did you mean X?)`, or nothing. */
export function suggestion(text: string, names: Iterable<string>): string {
  const name = nearest(text, names);
  return name === null ? "" : `; did you mean ${name}?`;
}
