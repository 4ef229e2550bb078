/** The records of the history, each as one line of JSON. */

import { type Codec, FieldError, watchedNs } from "../model/codec.ts";
import { rowJson } from "../model/exact-json.ts";
import {
  type DiskSample,
  type PassRow,
  passRow,
  type Removal,
  removal,
  sample,
} from "../model/history.ts";
import { type ImageId, imageId } from "../model/ids.ts";
import { type Event, event } from "../model/pass.ts";
import { type ObservedTime, watched } from "../model/time.ts";
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

/** How each line begins, so that most need not be parsed. */
export interface LineHead {
  readonly record: string;
  /** Counts the records of this state directory. */
  readonly seq: number;
  /** The ledger's age clock when it was recorded. */
  readonly watched: ObservedTime;
}

export const recordLine = <Kind extends RecordKind>(
  { seq, watched: at }: Pick<LineHead, "seq" | "watched">,
  { record, row }: HistoryRecord<Kind>,
): string =>
  `${rowJson({ record, seq, watchedNs: watchedNs.write(at), ...Object(codecs[record].write(row)) })}\n`;

const HEAD = /^\{"record":"(\w+)","seq":(\d{1,15}),"watchedNs":"?(\d{1,19})"?,/;
const HEAD_BYTES_MAX = 100;

/** `null`: no whole record. */
export function headOf(line: Buffer): LineHead | null {
  if (line.at(-1) !== CLOSE) return null;
  const found = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES_MAX));
  if (found === null) return null;
  const [, record = "", seq, at = ""] = found;
  return { record, seq: Number(seq), watched: watched(BigInt(at)) };
}

const CLOSE = "}".charCodeAt(0);

/** A record as it stands in the file. */
export type RawRecord = Readonly<Record<string, unknown>>;

export const rawOf = (line: Buffer): RawRecord => Object(parsedJson(line.toString()));

/** The ID at the beginning of a removal's line; `null`: not an image. */
export const imageIn = (line: Buffer): ImageId | null => {
  const [, id] = IMAGE.exec(line.toString("latin1", 0, IMAGE_BYTES_MAX)) ?? [];
  return id === undefined ? null : imageId(id);
};

const IMAGE = /^[^[]*"kind":"image","subject":"([^"]+)"/;
const IMAGE_BYTES_MAX = 512;

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
