/** The records of the history, each as one line of JSON. */

import { type Codec, FieldError } from "../model/codec.ts";
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

/** `seq`: counts the records of this state directory. */
export const recordLine = <Kind extends RecordKind>(
  seq: number,
  { record, row }: HistoryRecord<Kind>,
): string => `${rowJson({ record, seq, ...Object(codecs[record].write(row)) })}\n`;

/** How each line begins, so that most need not be parsed. */
const HEAD = /^\{"record":"(\w+)","seq":(\d{1,15}),/;
const HEAD_BYTES_MAX = 100;
const CLOSE = "}".charCodeAt(0);

/** `null`: no whole record. */
export function headOf(line: Buffer): { readonly record: string; readonly seq: number } | null {
  if (line.at(-1) !== CLOSE) return null;
  const found = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES_MAX));
  return found === null ? null : { record: found[1] ?? "", seq: Number(found[2]) };
}

/** A record as it stands in the file. */
export type RawRecord = Readonly<Record<string, unknown>>;

export const rawOf = (line: Buffer): RawRecord => Object(parsedJson(line.toString()));

export const isImageGone = ({ kind, result }: RawRecord): boolean =>
  kind === "image" && (result === "removed" || result === "already-gone");

/** With all its fields checked, which takes ten times as long as parsing it. `null`: broken, or of a later version. */
export function rowOf<Kind extends RecordKind>(record: Kind, raw: RawRecord): RowOf<Kind> | null {
  try {
    return codecs[record].read(raw);
  } catch (thrown) {
    if (thrown instanceof FieldError) return null;
    throw thrown;
  }
}
