/** Records of the ledger of how often images are used. */

import { count, nullable, type Of, record, watchedNs } from "./codec.ts";

export const frequencyRecord = record({
  /** Its arrival, each container not seen before, each further day of observed time in use. */
  uses: count,
  /** The aging term as of the last of them. */
  agingTerm: count,
  /** Observed time in use after this counts towards the next day, except while it was unused; `null`: never used. */
  dayBegunWatched: nullable(watchedNs),
});
export type Frequency = Of<typeof frequencyRecord>;

/** As in the record of an image; `null`: only its arrival, before any removal in the order `frequent`. */
interface Counted {
  readonly frequency: Frequency | null;
}

const ARRIVED: Frequency = { uses: 1, agingTerm: 0, dayBegunWatched: null };

export const frequencyOf = ({ frequency }: Counted): Frequency => frequency ?? ARRIVED;

/** The place in the order `frequent`: least frequently used first, with dynamic aging. */
export function orderKey(of: Counted): number {
  const { uses, agingTerm } = frequencyOf(of);
  return uses + agingTerm;
}
