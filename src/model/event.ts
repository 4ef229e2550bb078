/** Warning events: what an operator should hear of even if nobody reads the log. */

import type { PassId } from "./ids.ts";
import type { Instant } from "./time.ts";

export type EventReason =
  | "ImageGCFailed"
  | "ContainerGCFailed"
  | "FreeDiskSpaceFailed"
  | "InvalidDiskCapacity"
  | "EvictionThresholdMet"
  | "ImageGCFutile"
  | "KeepRulesInvalid"
  | "GhostImage";

export interface Event {
  readonly reason: EventReason;
  readonly message: string;
  readonly at: Instant;
  readonly passId: PassId | null;
}
