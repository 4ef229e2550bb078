// The trace in the state file: when each image was there and in use, as intervals, of which only changes are written.

import type { Database, SQLQueryBindings } from "bun:sqlite";

import { StoreError } from "../model/errors.ts";
import { type ChainId, chainId, type ImageId, imageId } from "../model/ids.ts";
import { hours, toMs } from "../model/time.ts";
import { type TraceKey, type TracePresent, type TraceUse, useKey } from "../model/trace.ts";
import { inTransaction, readSetting, writeSetting } from "./connection.ts";

export interface TracedImage {
  readonly image: ImageId;
  readonly names: readonly string[];
  /** As digits. */
  readonly sizeBytes: string;
  readonly chain: readonly ChainId[] | null;
}

/** What one detection saw. */
export interface TraceWrite {
  readonly atMs: number;
  /** The detection period. */
  readonly precisionMs: number;
  /** Observed time. */
  readonly watchedMs: number;
  /** What was there and in use; `null`: the same as the last time. */
  readonly keys: readonly TraceKey[] | null;
  /** All uses are known; otherwise none of them ends. */
  readonly isComplete: boolean;
}

export interface TraceRequest {
  readonly kind: "trace";
  /** New ones, and changed ones. */
  readonly images: readonly TracedImage[];
  /** `null`: more images come first. */
  readonly detection: TraceWrite | null;
}

/** Beside those of the ledger and without a version: a file of before gets them with its first trace. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS trace_image (
    id INTEGER PRIMARY KEY,
    image TEXT NOT NULL UNIQUE,
    names TEXT NOT NULL,
    size_bytes TEXT NOT NULL,
    layers BLOB
  ) STRICT;
  CREATE TABLE IF NOT EXISTS trace (
    seq INTEGER PRIMARY KEY,
    image INTEGER NOT NULL,
    name TEXT,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER,
    watched_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS trace_by_image ON trace (image);
  CREATE INDEX IF NOT EXISTS trace_open ON trace (seq) WHERE until_ms IS NULL;
  CREATE INDEX IF NOT EXISTS trace_ended ON trace (watched_ms) WHERE until_ms IS NOT NULL;
`;

/** Refuses a detection without keys for a file that has none. */
export function writeTrace(db: Database, { images, detection }: TraceRequest): void {
  inTransaction(db, () => {
    db.run(TABLES);
    if (detection?.keys === null && lastDetection(db) === null)
      throw new StoreError("write", "the open intervals are not known");
    writeImages(db, images);
    if (detection !== null) writeDetection(db, detection);
  });
}

function writeImages(db: Database, images: readonly TracedImage[]): void {
  const put = db.query(
    `INSERT INTO trace_image (image, names, size_bytes, layers) VALUES (?, ?, ?, ?)
     ON CONFLICT (image) DO UPDATE SET names = excluded.names, size_bytes = excluded.size_bytes,
       layers = ifnull(excluded.layers, layers)`,
  );
  for (const { image, names, sizeBytes, chain } of images)
    put.run(image, JSON.stringify(names), sizeBytes, chain === null ? null : packed(chain));
}

/**
 * Within the caller's transaction. While nothing changes only the time of the last detection is written: what is open
 * extends to it. It ends there if the next detection comes later than twice its period, or the clock was set.
 */
function writeDetection(db: Database, write: TraceWrite): void {
  const { atMs, precisionMs, watchedMs, keys, isComplete } = write;
  const last = lastDetection(db);
  const spanMs = 2 * Math.max(precisionMs, last?.precisionMs ?? 0);
  const continues = last !== null && Math.abs(atMs - last.atMs) <= spanMs;
  const now = continues ? Math.max(atMs, last.atMs) : atMs;
  writeSetting(db, LAST, JSON.stringify({ atMs: now, precisionMs }));
  if (keys === null && continues) return;
  const open = openRows(db);
  const seen = new Set(keys ?? open.keys());
  const end = db.query("UPDATE trace SET until_ms = ?, watched_ms = ? WHERE seq = ?");
  for (const [key, seq] of open) {
    const isKept = seen.has(key) || (!isComplete && key.includes("\n"));
    if (continues && isKept) continue;
    end.run(continues ? now : (last?.atMs ?? now), watchedMs, seq);
    open.delete(key);
  }
  const begin = db.query(
    `INSERT INTO trace (image, name, from_ms, watched_ms)
     SELECT id, ?, ?, ? FROM trace_image WHERE image = ?`,
  );
  for (const key of seen) {
    const [image, name = null] = splitKey(key);
    if (!open.has(key)) begin.run(name, now, watchedMs, image);
  }
  prune(db, watchedMs, STEP_ROWS + seen.size);
}

const LAST = "trace-last-detection";

function lastDetection(
  db: Database,
): { readonly atMs: number; readonly precisionMs: number } | null {
  const text = readSetting(db, LAST);
  return text === null ? null : JSON.parse(text);
}

function openRows(db: Database): Map<TraceKey, number> {
  const rows = db
    .query<{ seq: number; image: ImageId; name: string | null }, []>(
      `SELECT seq, trace_image.image, name FROM trace INDEXED BY trace_open
       JOIN trace_image ON trace_image.id = trace.image WHERE until_ms IS NULL`,
    )
    .all();
  return new Map(
    rows.map(({ seq, image, name }) => [name === null ? image : useKey(image, name), seq]),
  );
}

function splitKey(key: TraceKey): readonly [image: string, name?: string] {
  const at = key.indexOf("\n");
  return at === -1 ? [key] : [key.slice(0, at), key.slice(at + 1)];
}

const ROWS_MAX = 200_000;
/** Of observed time since an interval ended. */
const AGE_MAX_MS = toMs(hours(24 * 90));
/** Most rows that are deleted at once, beside as many as can have come. */
const STEP_ROWS = 500;

/** Deletes those that ended first. */
function prune(db: Database, watchedMs: number, step: number): void {
  const count = db.query<{ rows: number }, []>("SELECT count(*) AS rows FROM trace").get();
  const deleted = (condition: string, limit: number, ...values: SQLQueryBindings[]) =>
    db
      .query<{ image: number }, SQLQueryBindings[]>(
        `DELETE FROM trace WHERE seq IN (
           SELECT seq FROM trace INDEXED BY trace_ended WHERE until_ms IS NOT NULL ${condition}
           ORDER BY watched_ms LIMIT ?) RETURNING image`,
      )
      .all(...values, Math.max(0, limit));
  const old = deleted("AND watched_ms < ?", step, watchedMs - AGE_MAX_MS);
  const surplus = deleted("", Math.min(step, (count?.rows ?? 0) - old.length - ROWS_MAX));
  const unused = db.query(
    "DELETE FROM trace_image WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM trace WHERE image = ?1)",
  );
  for (const image of new Set([...old, ...surplus].map((it) => it.image))) unused.run(image);
}

/** What the state file has of the node; layers have no sizes. */
export interface RecordedTrace {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly precisionMs: number;
  readonly images: readonly TracedImage[];
  readonly present: readonly TracePresent[];
  readonly uses: readonly TraceUse[];
}

/** `null`: no agent has recorded one. In the order in which the intervals began. */
export function readTrace(db: Database): RecordedTrace | null {
  const table = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'trace'").get();
  const last = lastDetection(db);
  if (table === null || last === null) return null;
  const present: TracePresent[] = [];
  const uses: TraceUse[] = [];
  let fromMs = last.atMs;
  const rows = db.query<IntervalRow, []>(
    `SELECT trace_image.image, name, from_ms AS fromMs, until_ms AS untilMs
     FROM trace JOIN trace_image ON trace_image.id = trace.image ORDER BY seq`,
  );
  for (const { name, ...interval } of rows.iterate()) {
    fromMs = Math.min(fromMs, interval.fromMs);
    if (name === null) present.push({ kind: "Present", ...interval });
    else uses.push({ kind: "Use", ...interval, name: name === "" ? null : name });
  }
  // A clock that was once ahead leaves intervals behind that lie after the end.
  return {
    fromMs,
    untilMs: last.atMs,
    precisionMs: last.precisionMs,
    images: imagesIn(db),
    present,
    uses,
  };
}

interface IntervalRow {
  readonly image: ImageId;
  readonly name: string | null;
  readonly fromMs: number;
  readonly untilMs: number | null;
}

const imagesIn = (db: Database): readonly TracedImage[] =>
  db
    .query<{ image: string; names: string; sizeBytes: string; layers: Uint8Array | null }, []>(
      "SELECT image, names, size_bytes AS sizeBytes, layers FROM trace_image ORDER BY id",
    )
    .all()
    .map(({ image, names, sizeBytes, layers }) => ({
      image: imageId(image),
      names: JSON.parse(names),
      sizeBytes,
      chain: layers === null ? null : unpacked(layers),
    }));

const CHAIN_BYTES = 32;

const packed = (chain: readonly ChainId[]): Uint8Array =>
  Buffer.concat(chain.map((one) => Buffer.from(one.slice("sha256:".length), "hex")));

const unpacked = (bytes: Uint8Array): readonly ChainId[] =>
  Array.from({ length: bytes.length / CHAIN_BYTES }, (_, at) => {
    const digest = Buffer.from(bytes.subarray(at * CHAIN_BYTES, (at + 1) * CHAIN_BYTES));
    return chainId(`sha256:${digest.toString("hex")}`);
  });
