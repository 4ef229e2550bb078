/** What the history keeps of passes: each pass, each removal, and the disks. A later version may have written words that this one does not know: they are shown as they stand. */

import type { ChainId, PassId } from "./ids.ts";
import type { Signal } from "./limits.ts";
import type { ContainerOutcome, ImageEnd } from "./outcome.ts";
import type { PassKind, Step } from "./pass.ts";
import type { Purpose } from "./plan.ts";
import type { ImageTrigger, Subject } from "./reason.ts";
import type { Filesystem } from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

/** One thing that a pass tried to remove. A pass tries each thing once. */
export interface Removal {
  readonly passId: PassId;
  readonly kind: Subject["kind"];
  /** The image's, container's or sandbox's ID; the entry's name for logs. */
  readonly subject: string;
  /** Tags and digests of an image; pod and container name of the others. */
  readonly names: readonly string[];
  /** What asked for it: a trigger of images, or the purpose of the pass for the rest. */
  readonly trigger: ImageTrigger["kind"] | Purpose["kind"];
  /** With trigger `pressure`: the signal. */
  readonly signal: Signal | null;
  /** Reason code; for images the trigger's. */
  readonly reason: string;
  readonly result: "removed" | "already-gone" | "ghost" | "skipped" | "failed";
  /** What went wrong, or why it was left. */
  readonly message: string | null;
  readonly reportedBytes: bigint | null;
  readonly measuredBytes: bigint | null;
  /** The chain of all layers of an image, and what they let expect of its removal; `null`: not known, or the row is older. */
  readonly chainId: ChainId | null;
  readonly freesBytes: bigint | null;
  readonly freesAtLeastBytes: bigint | null;
  readonly freesAtMostBytes: bigint | null;
  readonly settled: "at-once" | "afterwards" | "not-seen" | "not-waited" | null;
  readonly at: Instant;
  readonly took: Duration | null;
}

export interface PassRow {
  readonly id: PassId;
  readonly kind: PassKind;
  readonly purpose: Purpose["kind"];
  readonly signals: readonly Signal[];
  readonly startedAt: Instant;
  /** `null`: it was cut short, or goes on. */
  readonly endedAt: Instant | null;
  readonly dryRun: boolean;
  readonly error: string | null;
  readonly imagesEnd: ImageEnd | null;
  readonly containersEnd: ContainerOutcome["end"] | null;
  readonly removed: number;
  readonly failed: number;
  readonly wantedBytes: bigint | null;
  readonly reportedFreedBytes: bigint | null;
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
  /** What the pass that took the sample freed on it afterwards; `null`: the sample is older than this field. */
  readonly freedBytes: bigint | null;
}
