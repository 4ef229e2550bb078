/** The records of the history, each as one line of JSON. */

import { type Codec, count, FieldError, watchedNs } from "../model/codec.ts";
import { rowJson } from "../model/exact-json.ts";
import {
  type DiskSample,
  type PassRow,
  passRow,
  type Removal,
  removal,
  sample,
} from "../model/history.ts";
import { type Event, event } from "../model/pass.ts";
import type { ObservedTime } from "../model/time.ts";
import { parsedJson } from "../model/values.ts";

interface Rows {
  readonly pass: PassRow;
  readonly removal: Removal;
  readonly warning: Event;
  readonly disk: DiskSample;
}
export type RecordKind = keyof Rows;
export type RowOf<Kind extends RecordKind> = Rows[Kind];

export type HistoryRecord<Kind extends RecordKind = RecordKind> = {
  readonly [K in Kind]: { readonly record: K; readonly row: RowOf<K> };
}[Kind];

const codecs: { readonly [Kind in RecordKind]: Codec<RowOf<Kind>> } = {
  pass: passRow,
  removal,
  warning: event,
  disk: sample,
};

/** What every record has beside its own fields. */
export interface RecordHead {
  /** Counts the records of this state directory. */
  readonly seq: number;
  /** The ledger's age clock when it was recorded. */
  readonly watched: ObservedTime;
}

export const recordLine = <Kind extends RecordKind>(
  { seq, watched }: RecordHead,
  { record, row }: HistoryRecord<Kind>,
): string =>
  `${rowJson({ record, seq, watchedNs: watchedNs.write(watched), ...Object(codecs[record].write(row)) })}\n`;

/** A record as parsed, before its own fields are read. */
export type ParsedLine = Readonly<Record<string, unknown>> & RecordHead;

/** `null`: a broken line. */
export function parsedLine(line: Buffer): ParsedLine | null {
  const document = Object(parsedJson(line.toString()));
  try {
    const seq = count.read(document.seq);
    return { ...document, seq, watched: watchedNs.read(document.watchedNs) };
  } catch (thrown) {
    if (thrown instanceof FieldError) return null;
    throw thrown;
  }
}

/** Whether the line may be a record of this kind: parsing all lines would take ten times as long. */
export const mayBe = (line: Buffer, record: RecordKind): boolean =>
  line.includes(`{"record":"${record}"`);

/** `null`: a broken record, or one of a later version. */
export function rowOf<Kind extends RecordKind>(
  record: Kind,
  document: ParsedLine,
): RowOf<Kind> | null {
  try {
    return codecs[record].read(document);
  } catch (thrown) {
    if (thrown instanceof FieldError) return null;
    throw thrown;
  }
}
