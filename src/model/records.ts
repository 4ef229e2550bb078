/** Records of the ledger with rules of their own: the kubelet's pulls, in `ROOT/image_manager`, leases, how often images are used. */

import {
  added,
  branded,
  byKind,
  count,
  durationNs,
  flag,
  inField,
  list,
  mapBy,
  nullable,
  type Of,
  oneOf,
  optional,
  record,
  text,
  texts,
  time,
  watchedNs,
} from "./codec.ts";
import { imageId } from "./ids.ts";

/**
 * What the kubelet's pull records say of an image. `pulled` and `no-record` are settled while the image is listed;
 * `pulling`: a pull of one of its names is under way.
 */
export const pullState = oneOf("pulled", "no-record", "pulling");
export type PullState = Of<typeof pullState>;

/** A pull that the kubelet has begun: it is under way, or a crash interrupted it. */
const pullIntent = record({
  /** As the pod spells it. */
  image: text,
  /** The last change of its file; another time is another pull. */
  markedAt: time,
});
export type PullIntent = Of<typeof pullIntent>;

/** A pull record with its content. */
const pullRecord = record({
  /** The file's name. */
  file: text,
  /** An image ID, or a repository digest on CRI-O; `null`: the file is not a valid record. */
  imageRef: nullable(text),
  /** Names that it was pulled by, without tag and digest. */
  names: texts,
  /** Whether every pod of the node may use the image without asking the registry. */
  isForAllPods: flag,
});
export type PullRecord = Of<typeof pullRecord>;

/** `null`: they cannot be read. */
const intents = nullable(list(pullIntent));

/** The kubelet's pull records, read after the lists, and its intents before its records. */
const reading = byKind({
  read: {
    directory: text,
    /** Files of the records that name an image. */
    recorded: mapBy("id", imageId, inField("files", texts)),
    /** Images that are not settled, with a record that proves no pull: of 0 bytes, or without credentials. */
    unreadable: list(branded(imageId)),
    /** Files of records that name no listed image. */
    unlisted: texts,
    intents,
    /** For reports; absent if not requested. */
    records: optional(list(pullRecord)),
  },
  /** There are none, or they cannot be read. */
  failed: { message: text, intents },
});
export type PullReading = Of<typeof reading>;

export const pullReading = added(reading, {
  kind: "failed",
  message: "the snapshot has none",
  intents: null,
});

/** A pull intent of the kubelet, as the ledger keeps it. */
export const pullIntentRecord = record({
  /** Another time is another pull. */
  markedAt: time,
  firstSeenWatched: watchedNs,
  /** When the intent was first missing; `null`: it is still there. */
  endedWatched: nullable(watchedNs),
});
export type PullIntentRecord = Of<typeof pullIntentRecord>;

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
