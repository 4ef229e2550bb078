// The maps of the ledger and their tables: which columns a record stands in, and how it is read back.

import type { Database } from "bun:sqlite";

import * as v from "valibot";

import { containerId, imageId, podUid, sandboxId } from "../model/ids.ts";
import type {
  ContainerRecord,
  ImageRecord,
  Ledger,
  PodRecord,
  ReleaseRecord,
} from "../model/ledger.ts";
import type { Instant, Watched } from "../model/time.ts";
import {
  bytesCell,
  bytesColumn,
  countColumn,
  instantColumn,
  marks,
  type Row,
  rowsOf,
  sameRow,
  textsColumn,
  watchedColumn,
} from "./columns.ts";

/** One map of the ledger and its table. */
export interface MapTable<Key extends string, Value> {
  readonly read: (db: Database) => ReadonlyMap<Key, Value>;
  /** Writes the rows that differ and returns how many. */
  readonly write: (db: Database, next: Ledger, previous: Ledger) => number;
}

interface TableShape<Shape extends v.GenericSchema, Key extends string, Value> {
  readonly table: string;
  /** The first column; the others are the value's. */
  readonly keyColumn: string;
  readonly map: (ledger: Ledger) => ReadonlyMap<Key, Value>;
  readonly shape: Shape;
  readonly entry: (row: v.InferOutput<Shape>) => readonly [Key, Value];
  readonly cells: (value: Value) => Row;
}

function tableOf<Shape extends v.GenericSchema, Key extends string, Value>(
  about: TableShape<Shape, Key, Value>,
): MapTable<Key, Value> {
  const { table, keyColumn, map, shape, entry } = about;
  const sql = `SELECT * FROM ${table} ORDER BY ${keyColumn}`;
  return {
    read: (db) => new Map(rowsOf(db, { sql }, shape).map(entry)),
    write: (db, next, previous) =>
      map(next) === map(previous)
        ? 0
        : upsert(db, about, { next: map(next), previous: map(previous) }) +
          drop(db, about, { next: map(next), previous: map(previous) }),
  };
}

interface Change<Key extends string, Value> {
  readonly next: ReadonlyMap<Key, Value>;
  readonly previous: ReadonlyMap<Key, Value>;
}

type Written<Key extends string, Value> = Pick<
  TableShape<v.GenericSchema, Key, Value>,
  "table" | "keyColumn" | "cells"
>;

function upsert<Key extends string, Value>(
  db: Database,
  about: Written<Key, Value>,
  { next, previous }: Change<Key, Value>,
): number {
  let written = 0;
  for (const [key, value] of next) {
    const before = previous.get(key);
    if (before === value) continue;
    const cells = about.cells(value);
    if (before !== undefined && sameRow(cells, about.cells(before))) continue;
    const sql = `INSERT OR REPLACE INTO ${about.table} VALUES (${marks(cells.length + 1)})`;
    db.query(sql).run(key, ...cells);
    written += 1;
  }
  return written;
}

function drop<Key extends string, Value>(
  db: Database,
  about: Written<Key, Value>,
  { next, previous }: Change<Key, Value>,
): number {
  const gone = [...previous.keys()].filter((key) => !next.has(key));
  for (const key of gone)
    db.query(`DELETE FROM ${about.table} WHERE ${about.keyColumn} = ?`).run(key);
  return gone.length;
}

// A ghost stands in three columns, which are all empty or all filled.
const ghostShape = {
  ghost_since: v.nullable(instantColumn),
  ghost_attempts: v.nullable(countColumn),
  ghost_retry_watched: v.nullable(watchedColumn),
};

interface GhostRow {
  readonly ghost_since: Instant | null;
  readonly ghost_attempts: number | null;
  readonly ghost_retry_watched: Watched | null;
}

function isWhole(row: GhostRow): boolean {
  const filled = [row.ghost_since, row.ghost_attempts, row.ghost_retry_watched].filter(
    (it) => it !== null,
  );
  return filled.length === 0 || filled.length === 3;
}

function ghostOf(row: GhostRow): ImageRecord["ghost"] {
  const { ghost_since: since, ghost_attempts: attempts, ghost_retry_watched: retryWatched } = row;
  if (since === null || attempts === null || retryWatched === null) return null;
  return { since, attempts, retryWatched };
}

export const imageTable = tableOf({
  table: "ledger_image",
  keyColumn: "id",
  map: (ledger) => ledger.images,
  shape: v.pipe(
    v.object({
      id: v.string(),
      first_seen_at: instantColumn,
      first_seen_watched: watchedColumn,
      last_used_at: v.nullable(instantColumn),
      last_used_watched: v.nullable(watchedColumn),
      names: v.string(),
      size_bytes: bytesColumn,
      ...ghostShape,
      earlier_names: textsColumn,
    }),
    v.check((row) => isWhole(row), "a ghost stands in three columns or in none"),
  ),
  entry: (row): readonly [ReturnType<typeof imageId>, ImageRecord] => [
    imageId(row.id),
    {
      firstSeenAt: row.first_seen_at,
      firstSeenWatched: row.first_seen_watched,
      lastUsedAt: row.last_used_at,
      lastUsedWatched: row.last_used_watched,
      names: row.names,
      earlierNames: row.earlier_names,
      sizeBytes: row.size_bytes,
      ghost: ghostOf(row),
    },
  ],
  cells: (it) => [
    it.firstSeenAt,
    it.firstSeenWatched,
    it.lastUsedAt,
    it.lastUsedWatched,
    it.names,
    bytesCell(it.sizeBytes),
    it.ghost?.since ?? null,
    it.ghost === null ? null : BigInt(it.ghost.attempts),
    it.ghost?.retryWatched ?? null,
    JSON.stringify(it.earlierNames),
  ],
});

export const containerTable = tableOf({
  table: "ledger_container",
  keyColumn: "id",
  map: (ledger) => ledger.containers,
  shape: v.object({
    id: v.string(),
    image_volumes: v.nullable(textsColumn),
    finished_at: v.nullable(instantColumn),
  }),
  entry: (row): readonly [ReturnType<typeof containerId>, ContainerRecord] => [
    containerId(row.id),
    { imageVolumes: row.image_volumes, finishedAt: row.finished_at },
  ],
  cells: (it) => [it.imageVolumes === null ? null : JSON.stringify(it.imageVolumes), it.finishedAt],
});

export const podTable = tableOf({
  table: "ledger_pod",
  keyColumn: "uid",
  map: (ledger) => ledger.pods,
  shape: v.object({
    uid: v.string(),
    absent_passes: countColumn,
    dead_passes: countColumn,
    dead_since_watched: v.nullable(watchedColumn),
    origin: v.nullable(v.picklist(["api", "pending", "static"])),
  }),
  entry: (row): readonly [ReturnType<typeof podUid>, PodRecord] => [
    podUid(row.uid),
    {
      absentPasses: row.absent_passes,
      deadPasses: row.dead_passes,
      deadSinceWatched: row.dead_since_watched,
      origin: row.origin,
    },
  ],
  cells: (it) => [BigInt(it.absentPasses), BigInt(it.deadPasses), it.deadSinceWatched, it.origin],
});

export const sandboxImageTable = tableOf({
  table: "ledger_sandbox_image",
  keyColumn: "id",
  map: (ledger) => ledger.sandboxImages,
  shape: v.object({ id: v.string(), name: v.string() }),
  entry: (row): readonly [ReturnType<typeof sandboxId>, string] => [sandboxId(row.id), row.name],
  cells: (name) => [name],
});

export const releaseTable = tableOf({
  table: "ledger_release",
  keyColumn: "runtime",
  map: (ledger) => ledger.releases,
  shape: v.object({
    runtime: v.string(),
    prompt_removals: countColumn,
    late_removals: countColumn,
  }),
  entry: (row): readonly [string, ReleaseRecord] => [
    row.runtime,
    { promptRemovals: row.prompt_removals, lateRemovals: row.late_removals },
  ],
  cells: (it) => [BigInt(it.promptRemovals), BigInt(it.lateRemovals)],
});
