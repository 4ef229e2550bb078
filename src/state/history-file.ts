/** `history.jsonl` and the older `history.1.jsonl`: one record a line, appended, and read by scanning. */

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  write,
} from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";

import { type Codec, FieldError } from "../model/codec.ts";
import { rowJson } from "../model/exact-json.ts";
import { type PassRow, passRow, type Removal, removal } from "../model/history.ts";
import { type Event, event } from "../model/pass.ts";
import { parsedJson } from "../model/values.ts";
import { adviceOn, isAbsent, reasonOf } from "../node/files.ts";
import {
  checkHead,
  type Fault,
  openFile,
  statePaths,
  type StatePlaces,
  storeError,
  syncDirectory,
  VERSION,
} from "./files.ts";

/** Of each of the two files. */
export const HISTORY_BYTES_MAX = 16 * 1024 * 1024;
/** A longer line is none of crigc's. */
const LINE_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;

const firstLine = ({ machineId }: StatePlaces): string =>
  `${rowJson({ record: "file", version: VERSION, machineId })}\n`;

/**
 * Appends whole lines, and begins a new file first if this one is full. Only the write itself leaves the thread, so that
 * it begins at once. Throws `StoreError`; then none is in the file.
 */
export async function appendLines(places: StatePlaces, lines: string): Promise<void> {
  const { history, olderHistory } = statePaths(places);
  try {
    mkdirSync(places.directory, { recursive: true, mode: 0o700 });
    if (await appendTo(history, lines, places)) return;
    await syncHistory(places);
    renameSync(history, olderHistory);
    await syncDirectory(places.directory);
    await appendTo(history, lines, places);
  } catch (thrown) {
    throw storeError(`write ${history}`, thrown);
  }
}

/** `false`: the file is full. */
async function appendTo(path: string, lines: string, places: StatePlaces): Promise<boolean> {
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const fd = openSync(path, flags | constants.O_NONBLOCK, 0o600);
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw new Error("it is not a regular file");
    const { size } = found;
    const start = size === 0 ? firstLine(places) : endsLine(fd, size) ? "" : "\n";
    const bytes = Buffer.from(start + lines);
    if (size > 0 && size + bytes.length > HISTORY_BYTES_MAX) return false;
    try {
      for (let at = 0; at < bytes.length;)
        at += (await written(fd, bytes.subarray(at))).bytesWritten;
    } catch (thrown) {
      // A full disk may take a part.
      ftruncateSync(fd, size);
      throw thrown;
    }
    return true;
  } finally {
    closeSync(fd);
  }
}

const written = promisify(write);

/** A power cut or a full disk may have cut the last line off. */
function endsLine(fd: number, size: number): boolean {
  const last = Buffer.alloc(1);
  readSync(fd, last, 0, 1, size - 1);
  return last[0] === NEWLINE;
}

export async function syncHistory(places: StatePlaces): Promise<void> {
  const { history } = statePaths(places);
  try {
    await using file = await open(history, constants.O_RDONLY | constants.O_NONBLOCK);
    await file.sync();
    await syncDirectory(places.directory);
  } catch (thrown) {
    if (!isAbsent(thrown)) throw storeError(`write ${history}`, thrown);
  }
}

/** Every line but the first of each file, the oldest first; none of a file that cannot be used. */
export function* historyLines(
  places: StatePlaces,
  onFault: (fault: Fault) => void,
): Generator<Buffer> {
  const files = openHistory(places, onFault);
  try {
    for (const fd of files.toReversed()) {
      const lines = linesOf(fd);
      lines.next();
      yield* lines;
    }
  } finally {
    for (const fd of files) closeSync(fd);
  }
}

/** Both at once and the newer first: one that becomes the older file meanwhile is read once. */
function openHistory(places: StatePlaces, onFault: (fault: Fault) => void): readonly number[] {
  const { history, olderHistory } = statePaths(places);
  const files = new Map<bigint, number>();
  for (const path of [history, olderHistory]) {
    let fd: number | null = null;
    try {
      fd = openFile(path, places);
      if (fd === null) continue;
      const { ino } = fstatSync(fd, { bigint: true });
      // A truncated first line proves nothing about its file.
      const first = parsedJson(String(linesOf(fd).next().value));
      if (first !== null) checkHead(first, places);
      if (files.has(ino)) closeSync(fd);
      else files.set(ino, fd);
    } catch (thrown) {
      if (fd !== null) closeSync(fd);
      onFault({ path, why: reasonOf(thrown), advice: adviceOn(thrown) });
    }
  }
  return [...files.values()];
}

function* linesOf(fd: number): Generator<Buffer, void> {
  let held = Buffer.alloc(0);
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; ;) {
    const length = readSync(fd, chunk, 0, CHUNK_BYTES, at);
    at += length;
    const text = Buffer.concat([held, chunk.subarray(0, length)]);
    let from = 0;
    for (let end = text.indexOf(NEWLINE); end >= 0; end = text.indexOf(NEWLINE, from)) {
      if (end > from) yield text.subarray(from, end);
      from = end + 1;
    }
    // An unterminated line keeps only its beginning, which does not parse.
    held = text.subarray(from, from + LINE_BYTES_MAX);
    if (length > 0) continue;
    if (held.length > 0) yield held;
    return;
  }
}

interface Rows {
  readonly pass: PassRow;
  readonly removal: Removal;
  readonly warning: Event;
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
