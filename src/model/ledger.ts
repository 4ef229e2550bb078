/** The records kept between observations. `remember` in policy makes the next ledger; the store saves it. */

import {
  amount,
  branded,
  bytes,
  chains,
  count,
  durationNs,
  flag,
  inField,
  mapBy,
  nullable,
  type Of,
  oneOf,
  record,
  type RecordOf,
  sparse,
  text,
  texts,
  time,
  watchedNs,
} from "./codec.ts";
import {
  type ChainId,
  chainId,
  containerId,
  creationKey,
  imageId,
  type PodUid,
  podUid,
  sandboxId,
} from "./ids.ts";
import type { Duration, Instant, ObservedTime } from "./time.ts";

/** An image that is still listed after its removal, which was answered or may still be in progress. */
const ghost = record({
  since: time,
  attempts: count,
  /** Not tried again before. */
  retryWatched: watchedNs,
  /** When a removal was first answered; `null`: none was. */
  answeredWatched: nullable(watchedNs),
  /** A second answer at least an hour later: not tried again until its names or the runtime change. */
  isFinal: flag,
  /** Names by which it was first listed after that answer, which may have taken some; `null` until then. */
  names: nullable(text),
  /** The runtime of the last attempt, as `NAME/VERSION`. */
  runtime: text,
  /** Tells one start of that runtime from another; "" if unknown. */
  instance: text,
  /** Whether a removal that was cut off has been tried again at once, which happens only once. */
  retriedAtOnce: flag,
});
export type Ghost = Of<typeof ghost>;

export const imageFields = {
  firstSeenAt: time,
  firstSeenWatched: watchedNs,
  /** `null`: never seen in use. */
  lastUsedAt: nullable(time),
  lastUsedWatched: nullable(watchedNs),
  /** Observed time when its tags or digests last changed, which restarts the minimum age; `null`: never. */
  ageRestartedWatched: sparse(watchedNs),
  /** Sorted tags and digests; if they change, the minimum age restarts. */
  names: text,
  sizeBytes: bytes,
  ghost: nullable(ghost),
};
export type ImageRecord = RecordOf<typeof imageFields>;

/** The record of an image that was not seen in use since it was first seen. */
export const unusedRecord = (
  of: Pick<ImageRecord, "firstSeenAt" | "firstSeenWatched" | "names" | "sizeBytes">,
): ImageRecord => ({
  ageRestartedWatched: null,
  lastUsedAt: null,
  lastUsedWatched: null,
  ghost: null,
  ...of,
});

/** A listed container: the next list must include it, and its status is read only once. */
const container = record({
  /** `null`: not read yet (a running container has volumes, and no end). */
  imageVolumes: nullable(texts),
  /** `null`: not ended, or not read yet. */
  finishedAt: nullable(time),
});
export type ContainerRecord = Of<typeof container>;

const pod = record({
  /** Observed time of the first of the passes in a row in which the pod source lacked it; `null`: the last one had it. */
  absentSinceWatched: nullable(watchedNs),
  /**
   * The same for passes without a ready sandbox or running container of it, or in which only its log directory was
   * known; `null` while it lives.
   */
  deadSinceWatched: nullable(watchedNs),
});
export type PodRecord = Of<typeof pod>;

/** A container that the kubelet is creating, by the mark that it makes just before it calls the runtime. */
export const containerCreation = record({
  podUid: branded(podUid),
  sandboxId: branded(sandboxId),
  /** "": the pod's directory cannot be read, and its ready sandbox has no container. */
  name: text,
  /** The time of the mark; of the sandbox if `name` is "". */
  markedAt: time,
});
export type ContainerCreation = Of<typeof containerCreation>;

/** The kubelet's directory of a container, which holds a file. */
export interface ContainerMark {
  readonly podUid: PodUid;
  readonly name: string;
  /** Its last change: the kubelet makes a file in it just before it creates each instance. */
  readonly at: Instant;
}

export interface MarkReading {
  readonly marks: readonly ContainerMark[];
  /** Pods whose marks cannot be read. */
  readonly unreadable: ReadonlySet<PodUid>;
}

/** A container that is being created, or (name "") a new sandbox without a container. */
const creation = record({
  sandboxId: branded(sandboxId),
  name: text,
  /** The first mark that crigc saw. */
  markedAt: time,
  firstSeenWatched: watchedNs,
  /** Whether a pass under pressure has waited for it. */
  awaited: flag,
});
export type CreationRecord = Of<typeof creation>;

/** Removals in a row on one filesystem that gave no space back. */
const nothingFreed = record({
  /** Those that no image with unknown layers could share. */
  knownSharers: count,
  removals: count,
  /** As after the last of them; if much more is available later, the record ends. */
  availableBytes: bytes,
  capacityBytes: bytes,
  /** Passes that ended for it in a row; from the first on, one image is tried after each pause. */
  pauses: count,
  /** When the next one is tried. */
  retryWatched: watchedNs,
});
export type NothingFreedRecord = Of<typeof nothingFreed>;

/** The measured and expected bytes of removals whose sharers were all known and whose layers tell what they free. */
const gain = record({
  removals: count,
  /** In the unit of reported sizes. */
  estimatedBytes: amount,
  measuredBytes: amount,
  /** The latest of them, for the largest gain. */
  recentRemovals: count,
  largestPerMille: amount,
  /** Observed time of the latest removal. */
  measuredWatched: watchedNs,
});
export type GainRecord = Of<typeof gain>;

/** What an image was built from, by its verbose status; it never changes for an image ID. */
export interface ImageOrigin {
  /** From the first layer to the last; `null` if the runtime does not say. */
  readonly chain: readonly ChainId[] | null;
  /** When the image was built; `null` if the runtime does not say. */
  readonly builtAt: Instant | null;
}

/** What an image was built from, read once: it never changes for an image ID. */
const origin = record({
  /** The chain that ends with its last layer; `null`: its status named no layers. */
  chain: nullable(branded(chainId)),
  builtAt: nullable(time),
});
export type OriginRecord = Of<typeof origin>;

/** Layers on top of another run's chain; images that share layers share runs. */
const layerRun = record({
  /** `null`: the run begins with a first layer. */
  below: nullable(branded(chainId)),
  /** From the first to the last, which identifies the run. */
  chain: chains,
});
export type LayerRun = Of<typeof layerRun>;

/** The maps of the ledger; each entry is a row of the state file. */
export const ledgerMaps = {
  images: mapBy("id", imageId, record(imageFields)),
  containers: mapBy("id", containerId, container),
  pods: mapBy("uid", podUid, pod),
  creations: mapBy("id", creationKey, creation),
  /** The image that a sandbox's own status names, read once; "" if it names none. */
  sandboxImages: mapBy("id", sandboxId, inField("name", text)),
  origins: mapBy("id", imageId, origin),
  /** By the last chain of the run. */
  layers: mapBy("last", chainId, layerRun),
  /** By `NAME/VERSION` of the runtime. */
  gains: mapBy("runtime", String, gain),
  /** By the filesystem's path. */
  nothingFreed: mapBy("path", String, nothingFreed),
};

/** The rest of the ledger: one row. */
export const stateFields = {
  /** Boot during which it was last written; "" in a fresh one. */
  bootId: text,
  /** The wall clock at the last observation; `null` in a fresh ledger. */
  observedAt: nullable(time),
  uptime: durationNs,
  watched: watchedNs,
  /** Nothing is removed before observed time reaches it; `null`: no grace period. */
  graceUntil: nullable(watchedNs),
  /** Why the grace period began, for messages. */
  graceReason: nullable(oneOf("boot", "containers-vanished")),
  /** Observed time when the minimum age of all images restarted; `null`: never. */
  ageRestartedWatched: sparse(watchedNs),
  /** Records may be missing or old: the next observation restarts the minimum age. */
  ageRestartDue: flag,
  /** Whether any container was listed at the last observation. */
  hadContainers: flag,
  /** Passes in a row, none under pressure, that waited for containers being created and removed no image. */
  heldUpPasses: count,
};

/** The whole ledger, as in a recorded node. */
export const ledgerCodec = record({ ...stateFields, ...ledgerMaps });
export type Ledger = Of<typeof ledgerCodec>;

/** The ledger of a node that was never observed: everything is new. */
export const emptyLedger: Ledger = {
  bootId: "",
  observedAt: null,
  uptime: 0n as Duration,
  watched: 0n as ObservedTime,
  graceUntil: null,
  graceReason: null,
  ageRestartedWatched: null,
  ageRestartDue: false,
  hadContainers: false,
  images: new Map(),
  containers: new Map(),
  pods: new Map(),
  creations: new Map(),
  heldUpPasses: 0,
  sandboxImages: new Map(),
  origins: new Map(),
  layers: new Map(),
  gains: new Map(),
  nothingFreed: new Map(),
};
