/** The records kept between observations. `remember` in policy makes the next ledger; the store saves it. */

import {
  branded,
  bytes,
  chains,
  durationNs,
  flag,
  list,
  mapBy,
  nullable,
  type Of,
  omitNull,
  oneOf,
  record,
  type RecordOf,
  text,
  texts,
  time,
  totalUptimeNs,
} from "./codec.ts";
import { type ChainId, chainId, containerId, imageId, podUid, sandboxId } from "./ids.ts";
import type { Duration, Instant, TotalUptime } from "./time.ts";

const imageFields = {
  firstSeenAt: time,
  firstSeenUptime: totalUptimeNs,
  /** `null`: never seen in use. */
  lastUsedAt: nullable(time),
  lastUsedUptime: nullable(totalUptimeNs),
  /** Uptime when its tags or digests last changed, which restarts the minimum age; `null`: never. */
  ageRestartedUptime: omitNull(totalUptimeNs),
  /** Sorted tags and digests; if they change, the minimum age restarts. */
  names: text,
  sizeBytes: bytes,
};
export type ImageRecord = RecordOf<typeof imageFields>;

/** A listed container: the next list must include it, and its status is read only once. */
const containerFields = {
  /** `null`: not read yet. */
  imageVolumes: nullable(texts),
};
export type ContainerRecord = RecordOf<typeof containerFields>;

const podFields = {
  /** Uptime of the first of the passes in a row in which the pod source lacked it; `null`: the last one had it. */
  absentSinceUptime: nullable(totalUptimeNs),
  /**
   * The same for passes without a ready sandbox or running container of it, or in which only its log directory was
   * known; `null` while it lives.
   */
  deadSinceUptime: nullable(totalUptimeNs),
};
export type PodRecord = RecordOf<typeof podFields>;

/** What an image was built from, by its verbose status; it never changes for an image ID. */
export interface ImageConfig {
  /** From the first layer to the last; `null` if the runtime does not say. */
  readonly chain: readonly ChainId[] | null;
  /** When the image was built; `null` if the runtime does not say. */
  readonly builtAt: Instant | null;
}

/** What an image was built from, read once: it never changes for an image ID. */
const imageConfigFields = {
  /** The chain that ends with its last layer; `null`: its status named no layers. */
  chain: nullable(branded(chainId)),
  builtAt: nullable(time),
};
export type ImageConfigRecord = RecordOf<typeof imageConfigFields>;

/** Layers on top of another run's chain; images that share layers share runs. */
const runFields = {
  /** `null`: the run begins with a first layer. */
  below: nullable(branded(chainId)),
  /** From the first to the last, which identifies the run. */
  chain: chains,
};
export type LayerRun = RecordOf<typeof runFields>;

export const ledgerCodec = record({
  /** Boot during which it was last written; "" in a fresh one. */
  bootId: text,
  /** The wall clock at the last observation; `null` in a fresh ledger. */
  observedAt: nullable(time),
  uptime: durationNs,
  totalUptime: totalUptimeNs,
  /** Nothing is removed before uptime reaches it; `null`: no grace period. */
  graceUntil: nullable(totalUptimeNs),
  /** Why the grace period began, for messages. */
  graceReason: nullable(oneOf("boot", "containers-vanished")),
  /** Uptime when the minimum age of all images restarted; `null`: never. */
  ageRestartedUptime: omitNull(totalUptimeNs),
  /** Records may be missing or old: the next observation restarts the minimum age. */
  ageRestartDue: flag,
  /** Listed at the last observation, without what crigc has removed since; `containers` too. */
  sandboxes: list(branded(sandboxId)),
  images: mapBy("id", imageId, imageFields),
  containers: mapBy("id", containerId, containerFields),
  pods: mapBy("uid", podUid, podFields),
  imageConfigs: mapBy("id", imageId, imageConfigFields),
  /** By the last chain of the run. */
  layers: mapBy("last", chainId, runFields),
});
export type Ledger = Of<typeof ledgerCodec>;

/** The ledger of a node that was never observed: everything is new. */
export const emptyLedger: Ledger = {
  bootId: "",
  observedAt: null,
  uptime: 0n as Duration,
  totalUptime: 0n as TotalUptime,
  graceUntil: null,
  graceReason: null,
  ageRestartedUptime: null,
  ageRestartDue: false,
  sandboxes: [],
  images: new Map(),
  containers: new Map(),
  pods: new Map(),
  imageConfigs: new Map(),
  layers: new Map(),
};
