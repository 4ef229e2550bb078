/** The order of removal: a total order, so that the same node always gives the same plan. */

import type { ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { Image } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  type TotalUptime,
  totalUptime,
  uptimeSince,
} from "../../model/time.ts";
import { atLeastZero, compared, larger } from "../../model/values.ts";
import { parseReference } from "./reference.ts";

export interface Ranked {
  readonly image: Image;
  readonly record: ImageRecord;
}

/**
 * The order of removal: unused for longest first, counted from the later of last used and first seen, so that what was
 * staged yesterday is not removed before what was unused for weeks; then first seen, build date (an unknown one last),
 * larger first, ID.
 */
export function compareImages(
  imageConfigs: Ledger["imageConfigs"],
): (a: Ranked, b: Ranked) => number {
  // Reproducible builds have a date at the epoch, which says nothing.
  const built = ({ image }: Ranked): bigint => {
    const at = imageConfigs.get(image.id)?.builtAt ?? null;
    return at === null || at <= 0n ? LAST : at;
  };
  return (a, b) =>
    compared(unusedSince(a.record), unusedSince(b.record)) ||
    compared(a.record.firstSeenUptime, b.record.firstSeenUptime) ||
    compared(built(a), built(b)) ||
    compared(b.image.sizeBytes, a.image.sizeBytes) ||
    compared<string>(a.image.id, b.image.id);
}

/** After every time. */
const LAST = 2n ** 63n;

/** The later of first seen and last used, in uptime. */
const unusedSince = ({ firstSeenUptime, lastUsedUptime }: ImageRecord): TotalUptime =>
  totalUptime(larger(firstSeenUptime, lastUsedUptime ?? firstSeenUptime));

/** Uptime since then; never negative. */
export const unusedFor = (record: ImageRecord, now: TotalUptime): Duration =>
  duration(atLeastZero(uptimeSince(now, unusedSince(record))));

export interface RepositoryPlace {
  readonly repository: string;
  /** 1 is the most recent; tags that tie share the better place. */
  readonly place: number;
}

/** The best place of each image by its tags. An image without a tag has none. */
export function repositoryPlaces(images: readonly Ranked[]): ReadonlyMap<ImageId, RepositoryPlace> {
  const tags = images.flatMap(({ image, record }) =>
    [...new Set(image.repoTags)].flatMap((text) => {
      const reference = parseReference(text);
      if (reference?.kind !== "name" || reference.tag === null) return [];
      return [{ id: image.id, repository: reference.repository, at: unusedSince(record) }];
    }),
  );
  const best = new Map<ImageId, RepositoryPlace>();
  for (const [repository, members] of Map.groupBy(tags, (tag) => tag.repository)) {
    const latestFirst = members.toSorted((one, other) => compared(other.at, one.at));
    let place = 1;
    for (const [index, { id, at }] of latestFirst.entries()) {
      if (latestFirst[index - 1]?.at !== at) place = index + 1;
      const before = best.get(id);
      if (before === undefined || isBetter({ repository, place }, before))
        best.set(id, { repository, place });
    }
  }
  return best;
}

/** Breaks ties by name, so that the reason does not depend on the order of a list. */
const isBetter = (a: RepositoryPlace, b: RepositoryPlace): boolean =>
  a.place < b.place || (a.place === b.place && a.repository < b.repository);
