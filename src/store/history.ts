// The history in its tables: appended in the transaction of the caller, asked by time, kind, reason and name.

import type { Database } from "bun:sqlite";

import { assertNever } from "../model/assert.ts";
import type { Event } from "../model/event.ts";
import type { Instant } from "../model/time.ts";
import { bytesCell, type Cell, marks, type Query, type Row, rowsOf } from "./columns.ts";
import type { DiskSample, HistoryRecord, PassRow, Removal } from "./history-rows.ts";
import { eventShape, passShape, removalShape, sampleShape } from "./history-shapes.ts";

export interface HistoryQuery {
  readonly since?: Instant | undefined;
  /** Exclusive. */
  readonly until?: Instant | undefined;
  readonly limit: number;
}

export interface RemovalQuery extends HistoryQuery {
  readonly kinds?: readonly Removal["kind"][] | undefined;
  /** Codes of reasons or triggers. */
  readonly reasons?: readonly string[] | undefined;
  readonly results?: readonly Removal["result"][] | undefined;
  /** A part of an ID or name, in any case of letters. */
  readonly text?: string | undefined;
  readonly passId?: string | undefined;
}

/** Newest first. Each removal carries the disk of its pass, before and after, where images were collected. */
export function queryRemovals(db: Database, query: RemovalQuery): readonly Removal[] {
  const where = conditions(query, "at");
  addChoice(where, ["kind"], query.kinds);
  addChoice(where, ["reason", '"trigger"'], query.reasons);
  addChoice(where, ["result"], query.results);
  if (query.passId !== undefined) add(where, "pass_id = ?", query.passId);
  if (query.text !== undefined && query.text !== "") {
    const text = query.text.toLowerCase();
    add(where, "(instr(lower(subject), ?) OR instr(lower(names), ?))", text, text);
  }
  return rowsOf(db, selectOf("removal", "at DESC, seq DESC", where), removalShape);
}

/** Newest first. */
export function queryPasses(db: Database, query: HistoryQuery): readonly PassRow[] {
  const where = conditions(query, "started_at");
  return rowsOf(db, selectOf("pass", "started_at DESC, id DESC", where), passShape);
}

/** Newest first. */
export function queryEvents(db: Database, query: HistoryQuery): readonly Event[] {
  const where = conditions(query, "at");
  return rowsOf(db, selectOf("event", "at DESC, seq DESC", where), eventShape);
}

/** Oldest first; the newest `limit` ones. */
export function querySamples(db: Database, query: HistoryQuery): readonly DiskSample[] {
  const where = conditions(query, "at");
  const sql = selectOf("disk_sample", "at DESC, seq DESC", where);
  return rowsOf(db, sql, sampleShape).toReversed();
}

export function writeRecord(db: Database, record: HistoryRecord): void {
  switch (record.kind) {
    case "pass":
      return writePass(db, record.row);
    case "removal":
      return writeRemoval(db, record.row);
    case "event":
      return writeEvent(db, record.row);
    case "sample":
      return writeSample(db, record.row);
    default:
      return assertNever(record);
  }
}

/** A pass again replaces its row: one that began becomes one that ended. */
function writePass(db: Database, row: PassRow): void {
  const cells: Row = [
    row.id,
    row.kind,
    row.purpose,
    JSON.stringify(row.signals),
    row.startedAt,
    row.endedAt,
    row.dryRun ? 1n : 0n,
    row.error,
    row.imagesEnd,
    row.containersEnd,
    BigInt(row.removed),
    BigInt(row.failed),
    bytes(row.wantedBytes),
    bytes(row.reportedFreedBytes),
    bytes(row.measuredFreedBytes),
    bytes(row.availableBeforeBytes),
    bytes(row.availableAfterBytes),
    bytes(row.capacityBytes),
    JSON.stringify(row.steps, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    ),
  ];
  db.query(`INSERT OR REPLACE INTO pass VALUES (${marks(cells.length)})`).run(...cells);
}

/** The same removal again, at the end of its pass, completes what is known of it and keeps its time. */
function writeRemoval(db: Database, row: Removal): void {
  const cells: Row = [
    row.passId,
    row.kind,
    row.subject,
    JSON.stringify(row.names),
    row.trigger,
    row.signal,
    row.reason,
    row.result,
    row.message,
    bytes(row.reportedBytes),
    bytes(row.measuredBytes),
    row.settled,
    row.at,
    row.took,
  ];
  db.query(
    `INSERT INTO removal VALUES (NULL, ${marks(cells.length)})
     ON CONFLICT (pass_id, kind, subject) DO UPDATE SET
       "trigger" = excluded."trigger", signal = excluded.signal, reason = excluded.reason,
       result = excluded.result, message = excluded.message, reported_bytes = excluded.reported_bytes,
       measured_bytes = excluded.measured_bytes, settled = excluded.settled, took = excluded.took`,
  ).run(...cells);
}

function writeEvent(db: Database, event: Event): void {
  db.query("INSERT INTO event VALUES (NULL, ?, ?, ?, ?)").run(
    event.at,
    event.passId,
    event.reason,
    event.message,
  );
}

function writeSample(db: Database, row: DiskSample): void {
  const cells: Row = [
    row.at,
    row.device,
    row.path,
    row.mountpoint,
    JSON.stringify(row.roles),
    bytesCell(row.capacityBytes),
    bytesCell(row.availableBytes),
    bytesCell(row.inodes),
    bytesCell(row.inodesFree),
  ];
  db.query(`INSERT INTO disk_sample VALUES (NULL, ${marks(cells.length)})`).run(...cells);
}

const bytes = (value: bigint | null): bigint | null => (value === null ? null : bytesCell(value));

interface Where {
  readonly clauses: string[];
  readonly values: Cell[];
  readonly limit: number;
}

function conditions(query: HistoryQuery, column: string): Where {
  const where: Where = { clauses: [], values: [], limit: Math.max(0, Math.trunc(query.limit)) };
  if (query.since !== undefined) add(where, `${column} >= ?`, query.since);
  if (query.until !== undefined) add(where, `${column} < ?`, query.until);
  return where;
}

function add(where: Where, clause: string, ...values: readonly Cell[]): void {
  where.clauses.push(clause);
  where.values.push(...values);
}

function addChoice(
  where: Where,
  columns: readonly string[],
  choices: readonly string[] | undefined,
): void {
  if (choices === undefined) return;
  const clauses = columns.map((column) => `${column} IN (${marks(choices.length)})`);
  add(where, `(${clauses.join(" OR ")})`, ...columns.flatMap(() => choices));
}

function selectOf(table: string, order: string, where: Where): Query {
  const filter = where.clauses.length === 0 ? "" : `WHERE ${where.clauses.join(" AND ")}`;
  const sql = `SELECT * FROM ${table} ${filter} ORDER BY ${order} LIMIT ${where.limit}`;
  return { sql, values: where.values };
}
