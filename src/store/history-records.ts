// The records of the history, each kind declared once: its fields, its time, and the key under which it is completed.

import type { DiskSample, PassRow, Regret, Removal } from "../model/history.ts";
import { chainId, passId } from "../model/ids.ts";
import type { Signal } from "../model/limits.ts";
import type { ContainerOutcome, ImageEnd } from "../model/outcome.ts";
import type { Event, Step } from "../model/pass.ts";
import type { FilesystemRole } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import {
  amount,
  branded,
  bytes,
  type Codec,
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
} from "./codec.ts";

interface HistoryRows {
  readonly pass: PassRow;
  readonly removal: Removal;
  readonly event: Event;
  readonly sample: DiskSample;
  readonly regret: Regret;
}

export type HistoryKind = keyof HistoryRows;
export type RowOf<Kind extends HistoryKind> = HistoryRows[Kind];

export type HistoryRecord<Kind extends HistoryKind = HistoryKind> = {
  readonly [K in Kind]: { readonly kind: K; readonly row: RowOf<K> };
}[Kind];

interface Declared<Row> {
  readonly codec: Codec<Row>;
  readonly at: (row: Row) => Instant;
  /** A record with the same key is completed; absent: each is a row of its own. */
  readonly key?: (row: Row) => string;
}

const step = record<Step>({
  name: word(),
  startedAt: time,
  took: durationNs,
  error: nullable(text),
});

const pass = record<PassRow>({
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

const removal = record<Removal>({
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
  chainId: nullable(branded(chainId)),
  freesBytes: nullable(amount),
  freesAtLeastBytes: nullable(amount),
  freesAtMostBytes: nullable(amount),
  settled: nullable(word<NonNullable<Removal["settled"]>>()),
  at: time,
  took: nullable(durationNs),
});

const regret = record<Regret>({
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

const event = record<Event>({
  at: time,
  passId: nullable(branded(passId)),
  reason: word(),
  message: text,
});

const sample = record<DiskSample>({
  at: time,
  device: text,
  path: text,
  mountpoint: text,
  roles: list(word<FilesystemRole>()),
  capacityBytes: bytes,
  availableBytes: bytes,
  inodes: bytes,
  inodesFree: bytes,
  highPercent: nullable(count),
  lowPercent: nullable(count),
  freedBytes: nullable(amount),
});

export const historyKinds: { readonly [Kind in HistoryKind]: Declared<RowOf<Kind>> } = {
  pass: { codec: pass, at: (row) => row.startedAt, key: ({ id }) => id },
  removal: {
    codec: removal,
    at: (row) => row.at,
    key: ({ passId: id, kind, subject }) => `${id} ${kind} ${subject}`,
  },
  event: { codec: event, at: (row) => row.at },
  sample: { codec: sample, at: (row) => row.at },
  regret: {
    codec: regret,
    at: (row) => row.at,
    key: ({ passId: id, subject }) => `${id} ${subject}`,
  },
};

/** The records of documents, without invalid ones: for those that no decision depends on. */
export const readable = <Kind extends HistoryKind>(
  kind: Kind,
  documents: readonly string[],
): readonly RowOf<Kind>[] =>
  documents.flatMap((document) => {
    try {
      return [historyKinds[kind].codec.read(JSON.parse(document))];
    } catch {
      return [];
    }
  });
