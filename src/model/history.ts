/**
 * The history's records of passes, removals, disks, and images that came back. Words of a later version are shown as
 * they are.
 */

import type { ChainId, PassId } from "./ids.ts";
import type { Signal } from "./limits.ts";
import type { ContainerOutcome, ImageEnd, Settled } from "./outcome.ts";
import type { PassKind, Step } from "./pass.ts";
import type { Purpose } from "./plan.ts";
import type { ImageTrigger, Subject } from "./reason.ts";
import type { Filesystem } from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

/** One attempted removal. A pass tries each only once. */
export interface Removal {
  readonly passId: PassId;
  readonly kind: Subject["kind"];
  /** The image's, container's or sandbox's ID; the entry's name for logs. */
  readonly subject: string;
  /** Tags and digests of an image; pod and container name of the others. */
  readonly names: readonly string[];
  /** The trigger of an image's removal, or the purpose of the pass for the rest. */
  readonly trigger: ImageTrigger["kind"] | Purpose["kind"];
  /** For trigger `pressure`: the signal. */
  readonly signal: Signal | null;
  /** Reason code; for images, the trigger's. */
  readonly reason: string;
  readonly result: "removed" | "already-gone" | "ghost" | "skipped" | "failed";
  /** What went wrong, or why it was kept. */
  readonly message: string | null;
  readonly reportedBytes: bigint | null;
  readonly measuredBytes: bigint | null;
  /** The chain of all layers of an image, and what its removal should free by them; `null`: unknown, or the row is older. */
  readonly chainId: ChainId | null;
  readonly freesBytes: bigint | null;
  readonly freesAtLeastBytes: bigint | null;
  readonly freesAtMostBytes: bigint | null;
  readonly settled: Settled | null;
  readonly at: Instant;
  readonly took: Duration | null;
}

/** By this pass, or by something else meanwhile. */
export const isGone = ({ result }: Pick<Removal, "result">): boolean =>
  result === "removed" || result === "already-gone";

export interface PassRow {
  readonly id: PassId;
  readonly kind: PassKind;
  readonly purpose: Purpose["kind"];
  readonly signals: readonly Signal[];
  readonly startedAt: Instant;
  /** `null`: interrupted, or still running. */
  readonly endedAt: Instant | null;
  readonly dryRun: boolean;
  readonly error: string | null;
  readonly imagesEnd: ImageEnd | null;
  readonly containersEnd: ContainerOutcome["end"] | null;
  readonly removed: number;
  readonly failed: number;
  readonly wantedBytes: bigint | null;
  readonly reportedFreedBytes: bigint | null;
  /** By images and containers together, as far as measured; `reportedFreedBytes` is of images. */
  readonly measuredFreedBytes: bigint | null;
  readonly availableBeforeBytes: bigint | null;
  readonly availableAfterBytes: bigint | null;
  readonly capacityBytes: bigint | null;
  readonly steps: readonly Step[];
}

/** A filesystem at the beginning of a pass. */
export interface DiskSample extends Omit<
  Filesystem,
  "imageUsedBytes" | "imageInodesUsed" | "containerUsedBytes"
> {
  readonly at: Instant;
  /** In force at that time; `null`: none, or the sample is older than this field. */
  readonly highPercent: number | null;
  readonly lowPercent: number | null;
  /** What the pass freed on it after taking the sample; `null`: the sample is older than this field. */
  readonly freedBytes: bigint | null;
}

/** An image that came back after it was removed, under the same ID or one of its names. */
export interface Regret extends Pick<
  Removal,
  "passId" | "subject" | "names" | "trigger" | "signal" | "reason"
> {
  readonly removedAt: Instant;
  /** When it was seen again. */
  readonly at: Instant;
  /** Its present ID. */
  readonly returnedAs: string;
  /** Its reported size: about what was pulled again. */
  readonly sizeBytes: bigint;
}

/** Removed images and those that came back, as far back as the history goes. */
export interface RegretFigures {
  readonly removedImages: number;
  /** By the trigger of the removal. */
  readonly returned: readonly {
    readonly trigger: string;
    readonly count: number;
    readonly sizeBytes: bigint;
  }[];
  /** The shortest time between removal and return; `null` if none came back. */
  readonly soonest: Duration | null;
}
