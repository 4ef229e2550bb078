/** The records kept between observations. `remember` in policy makes the next ledger; the store saves it. */

import type { ChainId, ContainerId, CreationId, ImageId, PodUid, SandboxId } from "./ids.ts";
import type { Duration, Instant, Watched } from "./time.ts";

export interface ImageRecord {
  readonly firstSeenAt: Instant;
  readonly firstSeenWatched: Watched;
  /** `null`: never seen in use. */
  readonly lastUsedAt: Instant | null;
  readonly lastUsedWatched: Watched | null;
  /** Observed time when its tags or digests last changed, by which the minimum age counts anew; `null`: never. */
  readonly ageRestartedWatched: Watched | null;
  /** Sorted tags and digests; if they change, the minimum age restarts. */
  readonly names: string;
  /** Former names of this image, the latest first, which keep rules match too. At most 32. */
  readonly earlierNames: readonly string[];
  readonly sizeBytes: bigint;
  readonly ghost: Ghost | null;
}

/** An image that is still listed after its removal, which was answered or may still be in progress. */
export interface Ghost {
  readonly since: Instant;
  readonly attempts: number;
  /** Not tried again before. */
  readonly retryWatched: Watched;
  /** When a removal was first answered; `null`: none was. */
  readonly answeredWatched: Watched | null;
  /** A second answer at least an hour later: not tried again until its names or the runtime change. */
  readonly isFinal: boolean;
  /** Names by which it was first listed after that answer, which may have taken some; `null` until then. */
  readonly names: string | null;
  /** The runtime of the last attempt, as `NAME/VERSION`. */
  readonly runtime: string;
  /** Tells one start of that runtime from another; "" if unknown. */
  readonly instance: string;
  /** Whether a removal that was cut off has been tried again at once, which happens only once. */
  readonly retriedAtOnce: boolean;
}

/** The record of an image that was not seen in use since it was first seen. */
export const unusedRecord = (
  of: Pick<ImageRecord, "firstSeenAt" | "firstSeenWatched" | "names" | "sizeBytes"> &
    Partial<Pick<ImageRecord, "earlierNames">>,
): ImageRecord => ({
  ageRestartedWatched: null,
  earlierNames: [],
  lastUsedAt: null,
  lastUsedWatched: null,
  ghost: null,
  ...of,
});

/** A listed container: the next list must include it, and its status is read only once. */
export interface ContainerRecord {
  /** `null`: not read yet (a running container has volumes, and no end). */
  readonly imageVolumes: readonly string[] | null;
  /** `null`: not ended, or not read yet. */
  readonly finishedAt: Instant | null;
}

export interface PodRecord {
  /** Observed time of the first of the passes in a row in which the pod source lacked it; `null`: the last one had it. */
  readonly absentSinceWatched: Watched | null;
  /**
   * The same for passes without a ready sandbox or running container of it, or in which only its log directory was
   * known; `null` while it lives.
   */
  readonly deadSinceWatched: Watched | null;
  /**
   * Where the pod comes from, according to the kubelet: its API server or a static manifest. `pending`: from the API
   * server, and the runtime has not known it so far. `null`: the kubelet never listed it, or was never asked.
   */
  readonly origin: "api" | "pending" | "static" | null;
}

/** A container that the kubelet is creating, by the mark that it makes just before it calls the runtime. */
export interface ContainerCreation {
  readonly podUid: PodUid;
  readonly sandboxId: SandboxId;
  /** "": the pod's directory cannot be read, and its ready sandbox has no container. */
  readonly name: string;
  /** The time of the mark; of the sandbox if `name` is "". */
  readonly markedAt: Instant;
}

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
export interface CreationRecord {
  readonly sandboxId: SandboxId;
  readonly name: string;
  /** The first mark that crigc saw. */
  readonly markedAt: Instant;
  readonly firstSeenWatched: Watched;
  /** Whether a pass under pressure has waited for it. */
  readonly awaited: boolean;
}

/** Removals in a row on one filesystem that gave no space back. */
export interface NothingFreedRecord {
  /** Those that no image with unknown layers could share. */
  readonly knownSharers: number;
  readonly removals: number;
  /** As after the last of them; if much more is available later, the record ends. */
  readonly availableBytes: bigint;
  readonly capacityBytes: bigint;
  /** Passes that ended for it in a row; from the first on, one image is tried after each pause. */
  readonly pauses: number;
  /** When the next one is tried. */
  readonly retryWatched: Watched;
}

/** The measured and expected bytes of removals whose sharers were all known and whose layers tell what they free. */
export interface GainRecord {
  readonly removals: number;
  /** In the unit of reported sizes. */
  readonly estimatedBytes: bigint;
  readonly measuredBytes: bigint;
  /** The latest of them, for the largest gain. */
  readonly recentRemovals: number;
  readonly largestPerMille: bigint;
  /** Observed time of the latest removal. */
  readonly measuredWatched: Watched;
}

export const noGain: GainRecord = {
  removals: 0,
  estimatedBytes: 0n,
  measuredBytes: 0n,
  recentRemovals: 0,
  largestPerMille: 0n,
  measuredWatched: 0n as Watched,
};

/** What an image was built from, read once: it never changes for an image ID. */
export interface OriginRecord {
  /** The chain that ends with its last layer; `null`: its status named no layers. */
  readonly chain: ChainId | null;
  readonly builtAt: Instant | null;
}

/** Layers on top of another run's chain; images that share layers share runs. */
export interface LayerRun {
  /** `null`: the run begins with a first layer. */
  readonly below: ChainId | null;
  /** From the first to the last, which identifies the run. */
  readonly chain: readonly ChainId[];
}

export interface Ledger {
  /** Boot during which it was last written; "" in a fresh one. */
  readonly bootId: string;
  /** The wall clock at the last observation; `null` in a fresh ledger. */
  readonly observedAt: Instant | null;
  readonly uptime: Duration;
  readonly watched: Watched;
  /** Nothing is removed before observed time reaches it; `null`: no grace period. */
  readonly graceUntil: Watched | null;
  /** Why the grace period began, for messages. */
  readonly graceReason: "boot" | "containers-vanished" | null;
  /** Observed time from which the minimum age of all images counts anew; `null`: it never restarted. */
  readonly ageRestartedWatched: Watched | null;
  /** Records may be missing or old: the next observation restarts the minimum age. */
  readonly ageRestartDue: boolean;
  /** Whether any container was listed at the last observation. */
  readonly hadContainers: boolean;
  readonly images: ReadonlyMap<ImageId, ImageRecord>;
  readonly containers: ReadonlyMap<ContainerId, ContainerRecord>;
  readonly pods: ReadonlyMap<PodUid, PodRecord>;
  readonly creations: ReadonlyMap<CreationId, CreationRecord>;
  /** Passes in a row, none under pressure, that waited for containers being created and removed no image. */
  readonly heldUpPasses: number;
  /** The image that a sandbox's own status names, read once; "" if it names none. */
  readonly sandboxImages: ReadonlyMap<SandboxId, string>;
  readonly origins: ReadonlyMap<ImageId, OriginRecord>;
  /** By the last chain of the run. */
  readonly layers: ReadonlyMap<ChainId, LayerRun>;
  /** By `NAME/VERSION` of the runtime. */
  readonly gains: ReadonlyMap<string, GainRecord>;
  /** By the filesystem's path. */
  readonly nothingFreed: ReadonlyMap<string, NothingFreedRecord>;
  /** Keep directories from which rules were once read. */
  readonly keepDirectories: readonly string[];
}

/** The ledger of a node that was never observed: everything is new. */
export const emptyLedger: Ledger = {
  bootId: "",
  observedAt: null,
  uptime: 0n as Duration,
  watched: 0n as Watched,
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
  keepDirectories: [],
};
