// What a kind of torture came to.

export type Result = {
  readonly name: string;
  readonly tried: number;
  /** Each says what must not be, and in which round. */
  readonly faults: readonly string[];
  readonly figures: string;
};

/** A small generator, so that a failure can be had again. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export type Torture = {
  readonly rounds: number;
  readonly random: () => number;
  /** Of `performance.now()`: no round begins after it. */
  readonly deadlineMs: number;
};
