/** The kubelet's records of its image pulls, in `ROOT/image_manager`, and what the ledger keeps of them. */

import {
  added,
  branded,
  byKind,
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
