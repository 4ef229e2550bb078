/**
 * The history's records of passes, removals, and images that came back. Words of a later version are shown as
 * they are.
 */

import {
  amount,
  branded,
  bytes,
  change,
  count,
  durationNs,
  flag,
  list,
  nullable,
  type Of,
  omitNull,
  openEnum,
  record,
  text,
  texts,
  time,
} from "./codec.ts";
import { passId } from "./ids.ts";
import type { Signal } from "./limits.ts";
import type {
  ContainerOutcome,
  Event,
  ImageEnd,
  ImageResult,
  PassKind,
  RemovalResult,
} from "./pass.ts";
import type { Purpose } from "./plan.ts";
import type { ImageTrigger, Subject } from "./reason.ts";
import type { Instant } from "./time.ts";

/** One attempted removal. A pass tries each only once. */
export const removal = record({
  passId: branded(passId),
  kind: openEnum<Subject["kind"]>(),
  /** The image's, container's or sandbox's ID; the entry's name for logs. */
  subject: text,
  /** Tags and digests of an image; pod and container name of the others. */
  names: texts,
  /** Of an image. */
  firstSeenAt: nullable(time),
  /** The trigger of an image's removal, or the purpose of the pass for the rest. */
  trigger: openEnum<ImageTrigger["kind"] | Purpose["kind"]>(),
  /** For trigger `pressure`: the signal. */
  signal: nullable(openEnum<Signal>()),
  /** Reason code; for images, the trigger's. */
  reason: text,
  result: openEnum<(ImageResult | RemovalResult)["kind"]>(),
  /** What went wrong, or why it was kept. */
  message: nullable(text),
  reportedBytes: nullable(bytes),
  /** Below 0 if others wrote more meanwhile. */
  measuredBytes: nullable(change),
  /** About what the removal of an image should free. */
  estimateBytes: nullable(amount),
  at: time,
  took: nullable(durationNs),
});
export type Removal = Of<typeof removal>;

export const passRow = record({
  id: branded(passId),
  kind: openEnum<PassKind>(),
  purpose: openEnum<Purpose["kind"]>(),
  signals: list(openEnum<Signal>()),
  /** The command and its user; `null`: the agent's own. */
  requestedBy: omitNull(text),
  startedAt: time,
  /** `null`: interrupted, or still running. */
  endedAt: nullable(time),
  dryRun: flag,
  error: nullable(text),
  imagesEnd: nullable(openEnum<ImageEnd>()),
  containersEnd: nullable(openEnum<ContainerOutcome["end"]>()),
  removed: count,
  failed: count,
  wantedBytes: nullable(amount),
  reportedFreedBytes: nullable(amount),
  /** By images and containers together, as far as measured; `reportedFreedBytes` is of images. */
  measuredFreedBytes: nullable(change),
  availableBeforeBytes: nullable(bytes),
  availableAfterBytes: nullable(bytes),
  capacityBytes: nullable(bytes),
});
export type PassRow = Of<typeof passRow>;

/** All that the history keeps, the oldest first. */
export interface History {
  readonly passes: readonly PassRow[];
  readonly removals: readonly Removal[];
  readonly events: readonly Event[];
  /** Images that came back after they were removed, by when they did. */
  readonly returned: readonly Regret[];
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
