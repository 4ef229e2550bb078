/** The order of removal: a total order, so that the same node always gives the same plan. */
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { Compat } from "../../model/limits.ts";
import type { Image } from "../../model/snapshot.ts";
import { type Duration, duration, type Instant, type Watched } from "../../model/time.ts";

export interface Ranked {
  readonly image: Image;
  readonly record: ImageRecord;
}

/**
 * The order of removal. Unused for longest first, counted from the later of last used and first seen, so that what was
 * staged yesterday is not removed before what was unused for weeks; then first seen, build date (an unknown one last),
 * larger first, ID. The kubelet's: last used (never comes first), first seen, larger first, ID.
 */
export function compareImages(
  compat: Compat,
  origins: Ledger["origins"],
): (a: Ranked, b: Ranked) => number {
  const bySizeAndId = (a: Ranked, b: Ranked) => compareSizes(b, a) || compareIds(a, b);
  // The watched clock does not jump; neither does the one by which the kubelet's process counts.
  if (compat === "kubelet") return (a, b) => compareUse(a.record, b.record) || bySizeAndId(a, b);
  return (a, b) =>
    compareWatched(a.record, b.record) || compareBuilt(origins, a, b) || bySizeAndId(a, b);
}

/** The later of first seen and last used, in observed time. */
export function unusedSince(record: ImageRecord): Watched {
  const { firstSeenWatched, lastUsedWatched } = record;
  return lastUsedWatched !== null && lastUsedWatched > firstSeenWatched
    ? lastUsedWatched
    : firstSeenWatched;
}

/** Observed time since then; never negative. */
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
  compareTimes(unusedSince(a), unusedSince(b)) ||
  compareTimes(a.firstSeenWatched, b.firstSeenWatched);

function compareBuilt(origins: Ledger["origins"], a: Ranked, b: Ranked): number {
  const one = builtAt(origins, a);
  const other = builtAt(origins, b);
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? 1 : -1;
  return one < other ? -1 : 1;
}

/** Reproducible builds have a date at the epoch, which says nothing. */
function builtAt(origins: Ledger["origins"], { image }: Ranked): Instant | null {
  const built = origins.get(image.id)?.builtAt ?? null;
  return built === null || built <= 0n ? null : built;
}

const compareUse = (a: ImageRecord, b: ImageRecord): number =>
  compareTimes(a.lastUsedWatched, b.lastUsedWatched) ||
  compareTimes(a.firstSeenWatched, b.firstSeenWatched);

const compareSizes = (a: Ranked, b: Ranked): number =>
  compareTimes(a.image.sizeBytes, b.image.sizeBytes);

const compareIds = (a: Ranked, b: Ranked): number =>
  a.image.id < b.image.id ? -1 : a.image.id > b.image.id ? 1 : 0;
