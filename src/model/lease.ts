/** Leases: keep rules that end. */

import { durationNs, flag, nullable, type Of, record, text, time, watchedNs } from "./codec.ts";

/** When a keep rule ends, in observed time from the first observation that read it. `text`: as written. */
export const lease = record({
  text,
  /** Also ends with the first use by a container that was first seen after its start. */
  untilUsed: flag,
  lasts: durationNs,
});
export type Lease = Of<typeof lease>;

/** A lease that an observation has read. */
export const leaseRecord = record({
  startedAt: time,
  startedWatched: watchedNs,
  /** When its image was used, which ended it; `null`: not. */
  usedAt: nullable(time),
});
export type LeaseRecord = Of<typeof leaseRecord>;
