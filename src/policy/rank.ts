/** The order of removal: a total order, so that the same node always gives the same plan. */
import type { ImageRecord } from "../model/ledger.ts";
import type { Compat } from "../model/limits.ts";
import type { Image } from "../model/snapshot.ts";
import { type Duration, duration, type Instant, type Watched } from "../model/time.ts";

export interface Ranked {
  readonly image: Image;
  readonly record: ImageRecord;
}

/** Last used (never comes first), first seen, larger first, then ID. */
export function compareImages(compat: Compat): (a: Ranked, b: Ranked) => number {
  // The watched clock does not jump; the kubelet knows only the wall clock.
  const byTime = compat === "kubelet" ? compareWall : compareWatched;
  return (a, b) => byTime(a.record, b.record) || compareSizes(b, a) || compareIds(a, b);
}

/** The later of first seen and last used, by the watched clock: since then the image is unused. */
export function unusedSince(record: ImageRecord): Watched {
  const { firstSeenWatched, lastUsedWatched } = record;
  return lastUsedWatched !== null && lastUsedWatched > firstSeenWatched
    ? lastUsedWatched
    : firstSeenWatched;
}

/** The same by the wall clock, which is all that the kubelet has. */
export function unusedSinceWall({ firstSeenAt, lastUsedAt }: ImageRecord): Instant {
  return lastUsedAt !== null && lastUsedAt > firstSeenAt ? lastUsedAt : firstSeenAt;
}

/** Watched time since then; never negative. */
export function unusedFor(record: ImageRecord, now: Watched): Duration {
  const span = now - unusedSince(record);
  return duration(span > 0n ? span : 0n);
}

/** The earlier instant first; `null` stands for never, which comes before all. */
export function compareTimes(a: bigint | null, b: bigint | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

const compareWatched = (a: ImageRecord, b: ImageRecord): number =>
  compareTimes(a.lastUsedWatched, b.lastUsedWatched) ||
  compareTimes(a.firstSeenWatched, b.firstSeenWatched);

const compareWall = (a: ImageRecord, b: ImageRecord): number =>
  compareTimes(a.lastUsedAt, b.lastUsedAt) || compareTimes(a.firstSeenAt, b.firstSeenAt);

const compareSizes = (a: Ranked, b: Ranked): number =>
  compareTimes(a.image.sizeBytes, b.image.sizeBytes);

const compareIds = (a: Ranked, b: Ranked): number =>
  a.image.id < b.image.id ? -1 : a.image.id > b.image.id ? 1 : 0;
