// How the ledger is written: each field is declared once, for the state file and for a recorded node.

import { chainId, containerId, creationKey, imageId, podUid, sandboxId } from "../model/ids.ts";
import {
  type ContainerRecord,
  type CreationRecord,
  type GainRecord,
  type Ghost,
  type ImageRecord,
  type LayerRun,
  type Ledger,
  noGain,
  type NothingFreedRecord,
  type OriginRecord,
  type PodRecord,
} from "../model/ledger.ts";
import type { Instant, Watched } from "../model/time.ts";
import {
  added,
  amount,
  branded,
  bytes,
  chains,
  type Codec,
  count,
  durationNs,
  flag,
  mapBy,
  nullable,
  oneOf,
  rare,
  record,
  text,
  texts,
  time,
  under,
  watchedNs,
} from "./codec.ts";

const imageFields = {
  firstSeenAt: time,
  firstSeenWatched: watchedNs,
  lastUsedAt: nullable(time),
  lastUsedWatched: nullable(watchedNs),
  ageRestartedWatched: rare(watchedNs),
  names: text,
  earlierNames: added(texts, []),
  sizeBytes: bytes,
  ghost: nullable(
    record<Ghost>({
      since: time,
      attempts: count,
      retryWatched: watchedNs,
      answeredWatched: added(nullable(watchedNs), null),
      isFinal: added(flag, false),
      names: added(nullable(text), null),
      runtime: added(text, ""),
      instance: added(text, ""),
      retriedAtOnce: added(flag, false),
    }),
  ),
} as const;

const container = record<ContainerRecord>({
  imageVolumes: nullable(texts),
  finishedAt: nullable(time),
});

const pod = record<PodRecord>({
  absentSinceWatched: added(nullable(watchedNs), null),
  deadSinceWatched: nullable(watchedNs),
  origin: added(nullable(oneOf("api", "pending", "static")), null),
});

const creation = record<CreationRecord>({
  sandboxId: branded(sandboxId),
  name: text,
  markedAt: time,
  firstSeenWatched: watchedNs,
  awaited: flag,
});

const nothingFreed = record<NothingFreedRecord>({
  knownSharers: count,
  removals: count,
  availableBytes: bytes,
  capacityBytes: bytes,
  pauses: count,
  retryWatched: watchedNs,
});

const aChain = branded(chainId);

const gain = record<GainRecord>({
  removals: count,
  estimatedBytes: amount,
  measuredBytes: amount,
  recentRemovals: added(count, noGain.recentRemovals),
  largestPerMille: added(amount, noGain.largestPerMille),
  measuredWatched: added(watchedNs, noGain.measuredWatched),
});

const origin = record<OriginRecord>({ chain: nullable(aChain), builtAt: nullable(time) });

const layerRun = record<LayerRun>({ below: nullable(aChain), chain: chains });

/** The maps of the ledger; each entry is a row of the state file. */
export const ledgerMaps = {
  images: mapBy("id", imageId, record<ImageRecord>(imageFields)),
  containers: mapBy("id", containerId, container),
  pods: mapBy("uid", podUid, pod),
  creations: mapBy("id", creationKey, creation),
  sandboxImages: mapBy("id", sandboxId, under("name", text)),
  gains: mapBy("runtime", (runtime) => runtime, gain),
  origins: mapBy("id", imageId, origin),
  layers: mapBy("last", chainId, layerRun),
  nothingFreed: mapBy("path", (path) => path, nothingFreed),
} as const;

export type LedgerState = Omit<Ledger, keyof typeof ledgerMaps>;

const stateFields = {
  bootId: text,
  observedAt: nullable(time),
  uptime: durationNs,
  watched: watchedNs,
  graceUntil: nullable(watchedNs),
  graceReason: nullable(oneOf("boot", "containers-vanished")),
  ageRestartedWatched: rare(watchedNs),
  ageRestartDue: added(flag, false),
  hadContainers: flag,
  heldUpPasses: added(count, 0),
  keepDirectories: texts,
} as const;

/** When an image was last in use: the same moment for all that were in use at one observation. */
export interface LastUse {
  readonly at: Instant;
  readonly watched: Watched;
}

/** The ledger besides its maps: one row, with the last observation at which anything was in use. */
export const stateRow = record<LedgerState & { readonly lastUse: LastUse | null }>({
  ...stateFields,
  lastUse: added(nullable(record({ at: time, watched: watchedNs })), null),
});

/** An image in use at that observation says only that, so that a node without changes writes no row per image. */
export const imageRow = record<ImageRecord & { readonly inUse: boolean }>({
  ...imageFields,
  inUse: added(flag, false),
});

/** The whole ledger, as in a recorded node. */
export const ledgerCodec: Codec<Ledger> = record<Ledger>({
  ...stateFields,
  ...ledgerMaps,
  creations: added(ledgerMaps.creations, new Map()),
  gains: added(ledgerMaps.gains, new Map()),
  nothingFreed: added(ledgerMaps.nothingFreed, new Map()),
  origins: added(ledgerMaps.origins, new Map()),
  layers: added(ledgerMaps.layers, new Map()),
});
