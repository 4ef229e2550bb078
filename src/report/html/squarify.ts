/** Squarified treemap: divides a rectangle by weights into near-squares (Bruls, Huizing and van Wijk, 2000). */

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** One rectangle per weight; weights are in descending order and not negative. */
export function squarified(weights: readonly number[], area: Rectangle): readonly Rectangle[] {
  const total = sumOf(weights);
  const scale = total > 0 ? (area.width * area.height) / total : 0;
  const made: Rectangle[] = [];
  let rest = area;
  let row: number[] = [];
  const lay = (): void => {
    const laid = laidOut(row, rest);
    made.push(...laid.rectangles);
    rest = laid.rest;
    row = [];
  };
  for (const weight of weights) {
    const size = weight * scale;
    const side = Math.min(rest.width, rest.height);
    if (row.length > 0 && worstRatio([...row, size], side) > worstRatio(row, side)) lay();
    row.push(size);
  }
  if (row.length > 0) lay();
  return made;
}

/** The worst aspect ratio in a row; 1 is a square. */
function worstRatio(row: readonly number[], side: number): number {
  const sum = sumOf(row);
  const least = Math.min(...row);
  if (sum <= 0 || least <= 0 || side <= 0) return Infinity;
  return Math.max(
    (side * side * Math.max(...row)) / (sum * sum),
    (sum * sum) / (side * side * least),
  );
}

/** A row along the shorter side of the remaining rectangle. */
function laidOut(
  row: readonly number[],
  rest: Rectangle,
): { readonly rectangles: readonly Rectangle[]; readonly rest: Rectangle } {
  const sum = sumOf(row);
  const isUpright = rest.width >= rest.height;
  const side = isUpright ? rest.height : rest.width;
  const depth = side > 0 ? Math.min(sum / side, isUpright ? rest.width : rest.height) : 0;
  let along = isUpright ? rest.y : rest.x;
  const rectangles = row.map((size) => {
    const length = sum > 0 ? (size / sum) * side : 0;
    const one = isUpright
      ? { x: rest.x, y: along, width: depth, height: length }
      : { x: along, y: rest.y, width: length, height: depth };
    along += length;
    return one;
  });
  return {
    rectangles,
    rest: isUpright
      ? { ...rest, x: rest.x + depth, width: rest.width - depth }
      : { ...rest, y: rest.y + depth, height: rest.height - depth },
  };
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);
