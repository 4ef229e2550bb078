/** Patterns with `*` (within a path component) and `**` (across components), matched in time linear in the text. */

export interface Glob {
  /** Not `null`: there is no star, and only this text matches. */
  readonly literal: string | null;
  /** The texts between stars, in order. If one is missing, nothing matches, which rejects nearly everything at once. */
  readonly parts: readonly string[];
  readonly steps: readonly Step[];
}

/** One character, or a star. */
type Step =
  | { readonly kind: "character"; readonly value: string }
  | { readonly kind: "star"; readonly crosses: boolean };

/** Two stars or more are `**`. Every text is a glob. */
export function compileGlob(source: string): Glob {
  const parts = source.split(/(\*+)/);
  const steps = parts.flatMap((part, index): readonly Step[] => {
    if (index % 2 === 1) return [{ kind: "star", crosses: part.length > 1 }];
    return Array.from({ length: part.length }, (_, at) => ({
      kind: "character",
      value: part.charAt(at),
    }));
  });
  return {
    literal: parts.length === 1 ? source : null,
    parts: parts.filter((_, index) => index % 2 === 0),
    steps,
  };
}

export function globMatches(glob: Glob, text: string): boolean {
  if (glob.literal !== null) return glob.literal === text;
  return hasParts(glob, text) && walk(glob.steps, text);
}

function hasParts({ parts }: Glob, text: string): boolean {
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return true;
}

/** Tracks all positions in the pattern that the text so far can have reached, so nothing is tried twice. */
function walk(steps: readonly Step[], text: string): boolean {
  let places = reached(steps, [0]);
  for (let at = 0; at < text.length && places.length > 0; at += 1) {
    places = reached(steps, advanced(steps, places, text.charAt(at)));
  }
  return places.includes(steps.length);
}

function advanced(
  steps: readonly Step[],
  places: readonly number[],
  character: string,
): readonly number[] {
  const next: number[] = [];
  for (const place of places) {
    const step = steps[place];
    if (step === undefined) continue;
    if (step.kind === "character") {
      if (step.value === character) next.push(place + 1);
    } else if (step.crosses || character !== "/") {
      next.push(place);
    }
  }
  return next;
}

/** Adds the positions after stars, which may match nothing. Positions are ascending and distinct. */
function reached(steps: readonly Step[], places: readonly number[]): readonly number[] {
  const all: number[] = [];
  for (const place of places) {
    let next = place;
    while (next > (all.at(-1) ?? -1)) {
      all.push(next);
      if (steps[next]?.kind !== "star") break;
      next += 1;
    }
  }
  return all;
}
