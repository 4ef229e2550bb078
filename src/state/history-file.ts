/** `history.jsonl` and the older `history.1.jsonl`: one record a line, appended, and read by scanning. */

import {
  closeSync,
  constants,
  fstatSync,
  fsync,
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
import { isMap, parsedJson } from "../model/values.ts";
import { isAbsent } from "../node/files.ts";
import { checkHead, readOwnFile, statePaths, type StatePlaces, VERSION } from "./files.ts";

/** Of each of the two files. */
export const HISTORY_BYTES_MAX = 16 * 1024 * 1024;
const NEWLINE = 10;

export type RecordKind = "pass" | "removal" | "warning";

/** `seq` counts the records of this state directory; `row` is as its codec wrote it. */
export const recordLine = (seq: number, record: RecordKind, row: unknown): string =>
  `${rowJson({ record, seq, ...Object(row) })}\n`;

const written = promisify(write);
const synced = promisify(fsync);

/**
 * Appends whole lines, to a new file if this one is full. Only the write itself leaves the thread, so that it begins at
 * once. If it rejects, none of the lines is in the file.
 */
export async function appendLines(places: StatePlaces, lines: string): Promise<void> {
  const { history, olderHistory } = statePaths(places);
  mkdirSync(places.directory, { recursive: true, mode: 0o700 });
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const fd = openSync(history, flags | constants.O_NONBLOCK, 0o600);
  try {
    const { size } = fstatSync(fd);
    const head = rowJson({ record: "file", version: VERSION, machineId: places.machineId });
    const start = size === 0 ? head : "";
    const bytes = Buffer.from(`${start}${endsLine(fd, size) ? "" : "\n"}${lines}`);
    if (size > 0 && size + bytes.length > HISTORY_BYTES_MAX) {
      await synced(fd);
      renameSync(history, olderHistory);
      return await appendLines(places, lines);
    }
    try {
      for (let at = 0; at < bytes.length;)
        at += (await written(fd, bytes.subarray(at))).bytesWritten;
    } catch (thrown) {
      // A full disk may take a part.
      ftruncateSync(fd, size);
      throw thrown;
    }
  } finally {
    closeSync(fd);
  }
}

/** A new file is on the disk once its directory is synced, too. */
export async function syncHistory(places: StatePlaces): Promise<void> {
  try {
    await using file = await open(
      statePaths(places).history,
      constants.O_RDONLY | constants.O_NONBLOCK,
    );
    await file.sync();
  } catch (thrown) {
    if (!isAbsent(thrown)) throw thrown;
  }
}

/** A power cut or a full disk may have cut the last line off. */
function endsLine(fd: number, size: number): boolean {
  const last = Buffer.alloc(1);
  if (size > 0) readSync(fd, last, 0, 1, size - 1);
  return last[0] === NEWLINE;
}

/** A record as it stands in the file. */
export interface RawRecord {
  readonly seq: number;
  readonly [field: string]: unknown;
}

/** Every record, the newest first; `null` for a line that is none. A file that cannot be used has none. */
export function* historyRecords(
  places: StatePlaces,
  onFault: (path: string, thrown: unknown) => void,
): Generator<RawRecord | null> {
  const { history, olderHistory } = statePaths(places);
  // The newer first: one that becomes the older file meanwhile is read twice, not never.
  const files = [history, olderHistory].map((path) => {
    try {
      return withoutHead(readOwnFile(path, places) ?? Buffer.alloc(0), places);
    } catch (thrown) {
      onFault(path, thrown);
      return Buffer.alloc(0);
    }
  });
  let last = Infinity;
  for (const file of files)
    for (const line of linesOf(file)) {
      const raw = parsedJson(line);
      if (!isRecord(raw)) yield null;
      else if (raw.seq < last) {
        last = raw.seq;
        yield raw;
      }
    }
}

const isRecord = (raw: unknown): raw is RawRecord => isMap(raw) && typeof raw["seq"] === "number";

/** Throws if the first line says that crigc cannot use the file; a truncated one says nothing. */
function withoutHead(content: Buffer, places: StatePlaces): Buffer {
  const end = content.indexOf(NEWLINE) + 1 || content.length;
  const head = parsedJson(content.toString("utf8", 0, end));
  if (head !== null) checkHead(head, places);
  return content.subarray(end);
}

/** The last one first. */
function* linesOf(content: Buffer): Generator<string> {
  const ends: number[] = [];
  for (let end = 0; end < content.length; ends.push(end))
    end = content.indexOf(NEWLINE, end) + 1 || content.length;
  for (let end = ends.pop(); end !== undefined; end = ends.pop())
    yield content.toString("utf8", ends.at(-1) ?? 0, end);
}

/** With its fields checked; none if it is another record, broken, or of a later version. */
export function rowsOf<Row>(record: RecordKind, codec: Codec<Row>, raw: RawRecord): readonly Row[] {
  if (raw["record"] !== record) return [];
  try {
    return [codec.read(raw)];
  } catch (thrown) {
    if (thrown instanceof FieldError) return [];
    throw thrown;
  }
}
