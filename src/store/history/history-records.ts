// The records of the history, each field declared once: passes, removals, events and disk samples.

import type { DiskSample, PassRow, Regret, Removal } from "../../model/history.ts";
import { chainId, passId } from "../../model/ids.ts";
import type { Signal } from "../../model/limits.ts";
import type { ContainerOutcome, ImageEnd } from "../../model/outcome.ts";
import type { Event, Step } from "../../model/pass.ts";
import type { FilesystemRole } from "../../model/snapshot.ts";
import {
  added,
  amount,
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
  wantedBytes: nullable(amount),
  reportedFreedBytes: nullable(amount),
  measuredFreedBytes: nullable(amount),
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
  freesBytes: added(nullable(amount), null),
  freesAtLeastBytes: added(nullable(amount), null),
  freesAtMostBytes: added(nullable(amount), null),
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
  freedBytes: added(nullable(amount), null),
});
