/** How often images are used, for the order `frequent`; counted in either order, so that it can be switched on later. */
import type { ContainerId, ImageId } from "../../model/ids.ts";
import type { ImageRecord, Ledger } from "../../model/ledger.ts";
import type { ImageItem } from "../../model/pass.ts";
import { type Frequency, frequencyOf } from "../../model/records.ts";
import type { Container, Snapshot } from "../../model/snapshot.ts";
import { hours, type ObservedTime, watched } from "../../model/time.ts";
import { atLeastZero } from "../../model/values.ts";
import type { Usage } from "./usage.ts";

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
