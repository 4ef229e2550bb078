// What the history holds, each field declared once: passes, removals, events and samples of the disks.

import { type ChainId, chainId, type PassId, passId } from "../../model/ids.ts";
import type { Signal } from "../../model/limits.ts";
import type { ContainerOutcome, ImageEnd } from "../../model/outcome.ts";
import type { Event, PassKind, Step } from "../../model/pass.ts";
import type { Purpose } from "../../model/plan.ts";
import type { ImageTrigger, Subject } from "../../model/reason.ts";
import type { Regret } from "../../model/regret.ts";
import type { FilesystemRole } from "../../model/snapshot.ts";
import type { Duration, Instant } from "../../model/time.ts";
import {
  added,
  branded,
  bytes,
  count,
  durationNs,
  flag,
  list,
  nullable,
  record,
  text,
  texts,
  time,
  word,
} from "../codec.ts";

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

export interface DiskSample {
  readonly at: Instant;
  readonly device: string;
  readonly path: string;
  readonly mountpoint: string;
  readonly roles: readonly FilesystemRole[];
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
  /** In force at that time; `null`: none, or the sample is older than this field. */
  readonly highPercent: number | null;
  readonly lowPercent: number | null;
  /** What the pass that took the sample freed on it afterwards; `null`: the sample is older than this field. */
  readonly freedBytes: bigint | null;
}

export type HistoryRecord =
  | { readonly kind: "pass"; readonly row: PassRow }
  | { readonly kind: "removal"; readonly row: Removal }
  | { readonly kind: "event"; readonly row: Event }
  | { readonly kind: "sample"; readonly row: DiskSample }
  | { readonly kind: "regret"; readonly row: Regret };

const step = record<Step>({
  name: word(),
  startedAt: time,
  took: durationNs,
  error: nullable(text),
});

export const passCodec = record<PassRow>({
  id: branded(passId),
  kind: word(),
  purpose: word(),
  signals: list(word<Signal>()),
  startedAt: time,
  endedAt: nullable(time),
  dryRun: flag,
  error: nullable(text),
  imagesEnd: nullable(word<ImageEnd>()),
  containersEnd: nullable(word<ContainerOutcome["end"]>()),
  removed: count,
  failed: count,
  wantedBytes: nullable(bytes),
  reportedFreedBytes: nullable(bytes),
  measuredFreedBytes: nullable(bytes),
  availableBeforeBytes: nullable(bytes),
  availableAfterBytes: nullable(bytes),
  capacityBytes: nullable(bytes),
  steps: list(step),
});

export const removalCodec = record<Removal>({
  passId: branded(passId),
  kind: word(),
  subject: text,
  names: texts,
  trigger: word(),
  signal: nullable(word<Signal>()),
  reason: text,
  result: word(),
  message: nullable(text),
  reportedBytes: nullable(bytes),
  measuredBytes: nullable(bytes),
  chainId: added(nullable(branded(chainId)), null),
  freesBytes: added(nullable(bytes), null),
  freesAtLeastBytes: added(nullable(bytes), null),
  freesAtMostBytes: added(nullable(bytes), null),
  settled: nullable(word<NonNullable<Removal["settled"]>>()),
  at: time,
  took: nullable(durationNs),
});

export const regretCodec = record<Regret>({
  passId: branded(passId),
  subject: text,
  names: texts,
  removedAt: time,
  at: time,
  returnedAs: text,
  sizeBytes: bytes,
  trigger: word(),
  signal: nullable(word<Signal>()),
  reason: text,
});

export const eventCodec = record<Event>({
  at: time,
  passId: nullable(branded(passId)),
  reason: word(),
  message: text,
});

export const sampleCodec = record<DiskSample>({
  at: time,
  device: text,
  path: text,
  mountpoint: text,
  roles: list(word<FilesystemRole>()),
  capacityBytes: bytes,
  availableBytes: bytes,
  inodes: bytes,
  inodesFree: bytes,
  highPercent: added(nullable(count), null),
  lowPercent: added(nullable(count), null),
  freedBytes: added(nullable(bytes), null),
});
