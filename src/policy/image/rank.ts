/** The order of removal: a total order, so that the same node always gives the same plan; and the uses that it counts. */

import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { Compat } from "../../model/limits.ts";
import type { ImageItem } from "../../model/pass.ts";
import { type Frequency, frequencyOf } from "../../model/records.ts";
import type { Container, Image, Snapshot } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  hours,
  type ObservedTime,
  watched,
  watchedSince,
} from "../../model/time.ts";
import { atLeastZero, compared } from "../../model/values.ts";
import { parseReference } from "./reference.ts";
import type { Usage } from "./usage.ts";

export interface Ranked {
  readonly image: Image;
  readonly record: ImageRecord;
  /** Present in the order `frequent`. */
  readonly orderKey?: number;
}

/**
 * The order of removal: unused for longest first, counted from the later of last used and first seen, so that what was
 * staged yesterday is not removed before what was unused for weeks; then first seen, build date (an unknown one last),
 * larger first, ID. The order `frequent` compares keys before all this. The kubelet's: last used (never comes first), first
 * seen, larger first, ID.
 */
export function compareImages(
  compat: Compat,
  origins: Ledger["origins"],
): (a: Ranked, b: Ranked) => number {
  const isKubelet = compat === "kubelet";
  // The watched clock does not jump; neither does the one by which the kubelet's process counts.
  const use = ({ record }: Ranked): bigint =>
    isKubelet ? (record.lastUsedWatched ?? NEVER) : unusedSince(record);
  // Reproducible builds have a date at the epoch, which says nothing.
  const built = ({ image }: Ranked): bigint => {
    const at = isKubelet ? null : (origins.get(image.id)?.builtAt ?? null);
    return at === null || at <= 0n ? LAST : at;
  };
  return (a, b) =>
    compared(a.orderKey ?? 0, b.orderKey ?? 0) ||
    compared(use(a), use(b)) ||
    compared(a.record.firstSeenWatched, b.record.firstSeenWatched) ||
    compared(built(a), built(b)) ||
    compared(b.image.sizeBytes, a.image.sizeBytes) ||
    compared<string>(a.image.id, b.image.id);
}

/** Before and after every time. */
const NEVER = -(2n ** 63n);
const LAST = 2n ** 63n;

/** The later of first seen and last used, in observed time. */
function unusedSince({ firstSeenWatched, lastUsedWatched }: ImageRecord): ObservedTime {
  return lastUsedWatched !== null && lastUsedWatched > firstSeenWatched
    ? lastUsedWatched
    : firstSeenWatched;
}

/** Observed time since then; never negative. */
export const unusedFor = (record: ImageRecord, now: ObservedTime): Duration =>
  duration(atLeastZero(watchedSince(now, unusedSince(record))));

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

const DAY = hours(24);

interface Seen {
  /** Observed time if it is in use; `null`: it is not. */
  readonly inUseAt: ObservedTime | null;
  /** Its containers that no earlier observation has seen. */
  readonly newContainers: number;
}

/** An image's uses after an observation. `before`: its record; `undefined`: it is new. */
export function countUses(
  ledger: Pick<Ledger, "watched" | "agingTerm">,
  before: ImageRecord | undefined,
  { inUseAt: now, newContainers }: Seen,
): Frequency | null {
  const known = before ?? { frequency: arrival(ledger), lastUsedWatched: null };
  if (now === null) return known.frequency;
  const { uses, agingTerm, dayBegunWatched } = frequencyOf(known);
  const last = known.lastUsedWatched ?? now;
  // Its day in use goes on where it ended, so that an image in use without a break changes once a day only.
  const unused = last === ledger.watched ? 0n : now - last;
  const begun = dayBegunWatched === null ? now : dayBegunWatched + unused;
  const days = atLeastZero(now - begun) / DAY;
  const added = newContainers + Number(days);
  if (added === 0 && begun === dayBegunWatched) return known.frequency;
  return {
    uses: uses + added,
    agingTerm: added === 0 ? agingTerm : (ledger.agingTerm ?? agingTerm),
    dayBegunWatched: watched(begun + days * DAY),
  };
}

/**
 * An image that comes back starts with a key above the one that it was removed with, so that one that is staged again
 * and again does not stay the first to go.
 */
const arrival = ({ agingTerm }: Pick<Ledger, "agingTerm">): Frequency | null =>
  agingTerm === null ? null : { uses: 1, agingTerm, dayBegunWatched: null };

/** So much may a container be older than the last observation and new: clocks are set, and lists take their time. */
const LATE = hours(1);

/**
 * Containers that no earlier observation has seen, counted by image; one that was there long before the last of them was
 * only missing in its list. The name of a container may have moved to another image since its creation, so only its ID
 * counts if it is listed.
 */
export function newContainersOf(
  { containers: known, observedAt }: Pick<Ledger, "containers" | "observedAt">,
  { images, containers }: Pick<Snapshot, "images" | "containers">,
  { users }: Usage,
): ReadonlyMap<ImageId, number> {
  const isNew = ({ id, createdAt }: Container): boolean =>
    !known.has(id) && (observedAt === null || createdAt <= 0n || createdAt + LATE >= observedAt);
  const fresh = containers.filter(isNew);
  const listed = new Set<string>(images.map(({ id }) => id));
  const ownImage = new Map(
    fresh.map((it) => [it.id, [it.imageId, it.imageRef].find((own) => listed.has(own))]),
  );
  const counts = new Map<ImageId, number>();
  for (const [image, those] of users) {
    // One container may use an image twice: as its own and as a volume.
    const its = new Set<ContainerId>();
    for (const user of those) {
      if (user.kind !== "image-volume" && user.kind !== "container") continue;
      const isItsOwn = user.kind === "image-volume" || (ownImage.get(user.id) ?? image) === image;
      if (isItsOwn && ownImage.has(user.id)) its.add(user.id);
    }
    if (its.size > 0) counts.set(image, its.size);
  }
  return counts;
}

/** After the removal of an image: the aging term only rises, and only by removals in this order for a target. */
export function raiseAgingTerm(
  ledger: Ledger,
  { candidate: { orderKey = 0 }, trigger }: Pick<ImageItem, "candidate" | "trigger">,
): Ledger {
  const isForTarget = trigger.kind !== "age" && trigger.kind !== "all-unused";
  if (!isForTarget || orderKey <= (ledger.agingTerm ?? 0)) return ledger;
  return { ...ledger, agingTerm: orderKey };
}
