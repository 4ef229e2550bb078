/** One pass: its trigger, plan, outcome and timed steps. */

import { branded, durationNs, nullable, type Of, record, text, time, word } from "./codec.ts";
import { type PassId, passId } from "./ids.ts";
import type { ContainerOutcome, ImageOutcome } from "./outcome.ts";
import type { Plan, Purpose } from "./plan.ts";
import type { Instant } from "./time.ts";

export const eventReasons = [
  "ImageGCFailed",
  "ContainerGCFailed",
  "FreeDiskSpaceFailed",
  "InvalidDiskCapacity",
  "EvictionThresholdMet",
  "ImageGCFutile",
  "KeepRulesInvalid",
  "GhostImage",
  "BaselineImageMissing",
  "RecordsLost",
] as const;
export type EventReason = (typeof eventReasons)[number];

/** A warning event, which an operator should get even without reading the log. */
export const event = record({
  at: time,
  passId: nullable(branded(passId)),
  reason: word<EventReason>(),
  message: text,
});
export type Event = Of<typeof event>;

export type PassKind = "image-gc" | "container-gc" | "pressure" | "gc";

/**
 * What a pass waits for. `turn`: another loop's pass. `lock`: another process. Within other steps, added up: `lists`
 * before removals, removal of `containers`, `creation` of containers, `space` that appears late.
 */
export type WaitName = "turn" | "lock" | "lists" | "containers" | "creation" | "space";

export const step = record({
  name: word<WaitName | "observe" | "remember" | "decide" | "layers" | "execute" | "store">(),
  startedAt: time,
  took: durationNs,
  /** `null` for success. */
  error: nullable(text),
});
export type Step = Of<typeof step>;

export type PassStart = Pick<Pass, "id" | "kind" | "purpose" | "startedAt">;

export interface Pass {
  readonly id: PassId;
  readonly kind: PassKind;
  readonly purpose: Purpose;
  readonly startedAt: Instant;
  readonly endedAt: Instant;
  readonly dryRun: boolean;
  readonly plan: Plan;
  readonly images: ImageOutcome | null;
  readonly containers: ContainerOutcome | null;
  readonly events: readonly Event[];
  readonly steps: readonly Step[];
  /** A list, a stat or the lock failed, and nothing was done; `null` if the pass completed. */
  readonly error: string | null;
}

export type LoopName = "image-cache" | "image-detection" | "image-gc" | "container-gc" | "pressure";

export interface LoopStatus {
  readonly name: LoopName;
  readonly periodMs: number;
  /** False if nothing triggers the loop (image GC with a high threshold of 100 and no other trigger). */
  readonly enabled: boolean;
  readonly lastStartedAt: Instant | null;
  readonly lastEndedAt: Instant | null;
  readonly nextAt: Instant | null;
  /** `null`: the last run succeeded, or there was none. */
  readonly lastError: string | null;
  readonly consecutiveFailures: number;
}

/** A hold: collection is paused until it expires or is released. */
export type HoldState =
  | { readonly kind: "none" }
  | {
      readonly kind: "held";
      /** `null`: until it is released. */
      readonly until: Instant | null;
      readonly since: Instant | null;
      readonly reason: string;
    };
