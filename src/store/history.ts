// The history in the state file: appended in the caller's transaction, queried by time, kind, reason and name, and
// bounded.

import type { Database } from "bun:sqlite";

import type { Codec } from "../model/codec.ts";
import { rowJson } from "../model/exact-json.ts";
import {
  type DiskSample,
  type PassRow,
  passRow,
  type Regret,
  regret,
  type Removal,
  removal,
  sample,
} from "../model/history.ts";
import { type Event, event } from "../model/pass.ts";
import { hours, type Instant, type ObservedTime } from "../model/time.ts";
import { REMOVED_IMAGE } from "./connection.ts";

interface HistoryRows {
  readonly pass: PassRow;
  readonly removal: Removal;
  readonly event: Event;
  readonly sample: DiskSample;
  readonly regret: Regret;
}

export type HistoryKind = keyof HistoryRows;
type RowOf<Kind extends HistoryKind> = HistoryRows[Kind];

export type HistoryRecord<Kind extends HistoryKind = HistoryKind> = {
  readonly [K in Kind]: { readonly kind: K; readonly row: RowOf<K> };
}[Kind];

interface Declared<Row> {
  readonly codec: Codec<Row>;
  readonly at: (row: Row) => Instant;
  /** A record with the same key is completed; absent: each is a row of its own. */
  readonly key?: (row: Row) => string;
}

const historyKinds: { readonly [Kind in HistoryKind]: Declared<RowOf<Kind>> } = {
  pass: { codec: passRow, at: (row) => row.startedAt, key: ({ id }) => id },
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

export interface HistoryQuery {
  readonly since?: Instant | undefined;
  /** Exclusive. */
  readonly until?: Instant | undefined;
  readonly limit: number;
}

export interface PassQuery extends HistoryQuery {
  /** `false`: only passes that had something to do, or failed to find out. */
  readonly idle?: boolean | undefined;
}

export interface RemovalQuery extends HistoryQuery {
  readonly kinds?: readonly Removal["kind"][] | undefined;
  /** Codes of reasons or triggers. */
  readonly reasons?: readonly string[] | undefined;
  readonly results?: readonly Removal["result"][] | undefined;
  /** Part of an ID or name, case-insensitive. */
  readonly text?: string | undefined;
  readonly passId?: string | undefined;
}

/** Newest first. */
export function queryHistory<Kind extends HistoryKind>(
  db: Database,
  kind: Kind,
  query: RemovalQuery & PassQuery,
): readonly RowOf<Kind>[] {
  const { clauses, values } = conditions(kind, query);
  const sql = `SELECT document FROM history WHERE ${clauses.join(" AND ")}
    ORDER BY at DESC, seq DESC LIMIT ${Math.max(0, Math.trunc(query.limit))}`;
  const rows = db.query<{ document: string }, Cell[]>(sql).all(...values);
  return rows.map(({ document }) => historyKinds[kind].codec.read(JSON.parse(document)));
}

/** Newest first. A pass that was killed or still runs counts what it has removed so far: its own row has that at its end only. */
export const queryPasses = (db: Database, query: PassQuery): readonly PassRow[] =>
  queryHistory(db, "pass", query).map((row) =>
    row.endedAt === null ? { ...row, ...countsSoFar(db, row) } : row,
  );

function countsSoFar(db: Database, { id }: PassRow): Pick<PassRow, "removed" | "failed"> {
  const counts = { removed: 0, failed: 0 };
  const results = db
    .query<{ result: string }, [string, string]>(
      `SELECT ${field("result")} AS result FROM history WHERE key >= ? AND key < ?`,
    )
    .all(`removal ${id} `, `removal ${id}!`);
  for (const { result } of results) {
    if (result === "removed" || result === "already-gone") counts.removed += 1;
    if (result === "failed" || result === "ghost") counts.failed += 1;
  }
  return counts;
}

/** How many of the latest removed images are recognised when they come back. */
export const REMOVED_IMAGES = 1_000;

/** How many disk samples: more than a day of passes every five minutes on three filesystems. */
export const SAMPLES_KEPT = 1_000;

/** Records that describe the present, read when the file is opened. */
export function readRecentHistory(db: Database): RecentHistory {
  const rows = (kind: HistoryKind, filter: string): readonly string[] =>
    newestDocuments(db, kind, { filter, limit: REMOVED_IMAGES });
  const count = db
    .query<{ count: number }, []>(
      `SELECT count(*) AS count FROM history INDEXED BY removed_images WHERE ${REMOVED_IMAGE}`,
    )
    .get();
  return {
    removals: rows("removal", `AND ${REMOVED_IMAGE}`),
    regrets: rows("regret", ""),
    removedCount: count?.count ?? 0,
    samples: newestDocuments(db, "sample", { filter: "", limit: SAMPLES_KEPT }),
  };
}

/** In the order in which they were recorded: their times follow the wall clock, which can be set. */
export const queryNewestSamples = (db: Database): readonly DiskSample[] =>
  newestDocuments(db, "sample", { filter: "", limit: SAMPLES_KEPT }).map((document) =>
    historyKinds.sample.codec.read(JSON.parse(document)),
  );

const newestDocuments = (
  db: Database,
  kind: HistoryKind,
  { filter, limit }: { readonly filter: string; readonly limit: number },
): readonly string[] =>
  db
    .query<{ document: string }, [string]>(
      `SELECT document FROM history WHERE kind = ? ${filter} ORDER BY seq DESC LIMIT ${limit}`,
    )
    .all(kind)
    .map(({ document }) => document)
    .toReversed();

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

/** Documents of the newest rows, oldest first. */
export interface RecentHistory {
  /** Of images. */
  readonly removals: readonly string[];
  readonly regrets: readonly string[];
  /** Of all removed images in the history. */
  readonly removedCount: number;
  readonly samples: readonly string[];
}

/** A record as a row of the state file. */
export interface HistoryRow {
  readonly kind: HistoryKind;
  /** A row with the same key is completed; `null`: each record is a row of its own. */
  readonly key: string | null;
  readonly at: string;
  readonly document: string;
}

export function historyRow<Kind extends HistoryKind>({
  kind,
  row,
}: HistoryRecord<Kind>): HistoryRow {
  const { codec, key, at } = historyKinds[kind];
  return {
    kind,
    key: key === undefined ? null : `${kind} ${key(row)}`,
    at: at(row).toString(),
    document: rowJson(codec.write(row)),
  };
}

/**
 * A pass that began is replaced by the pass that ended. A removal is completed at the end of its pass, and keeps its
 * time. A regret never changes.
 */
export function writeRow(db: Database, row: HistoryRow, watched: string): void {
  db.query(
    `INSERT INTO history (kind, key, at, watched, document) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET document = CASE kind
       WHEN 'removal' THEN json_set(excluded.document, '$.at', ${field("at")})
       WHEN 'regret' THEN document
       ELSE excluded.document END`,
  ).run(row.kind, row.key, BigInt(row.at), BigInt(watched), row.document);
}

// About 90 MB at most: a removal takes some 800 bytes, the others less.
const rowsMax: readonly (readonly [kind: HistoryKind, rows: number])[] = [
  ["removal", 100_000],
  ["pass", 50_000],
  ["event", 20_000],
  ["regret", 20_000],
  ["sample", 100_000],
];
const ageMax = hours(24 * 90);
const stepRows = 500;

/**
 * Deletes at most `stepRows` rows of each kind that are too old or too many; returns how many. Age is observed time,
 * because a node's wall clock may be wrong by years until it is corrected.
 */
export function prune(db: Database, now: ObservedTime, bounds = rowsMax): number {
  let deleted = 0;
  for (const [kind, rows] of bounds)
    deleted += db
      .query(
        `DELETE FROM history WHERE seq IN (
           SELECT seq FROM (SELECT seq, watched FROM history WHERE kind = ?1 ORDER BY seq LIMIT ?2)
           WHERE watched < ?3 OR
             seq <= (SELECT seq FROM history WHERE kind = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?4))`,
      )
      .run(kind, BigInt(stepRows), now - ageMax, BigInt(rows)).changes;
  return deleted;
}

const field = (name: string): string => `document ->> '$.${name}'`;

type Cell = string | bigint;

interface Where {
  readonly clauses: string[];
  readonly values: Cell[];
}

/** Most passes have nothing to do and would hide the others. */
const IS_IDLE = `(${field("imagesEnd")} = 'nothing-to-do' AND ${field("error")} IS NULL AND
  ${field("endedAt")} IS NOT NULL AND ${field("removed")} + ${field("failed")} = 0)`;

function conditions(kind: HistoryKind, query: RemovalQuery & PassQuery): Where {
  const where: Where = { clauses: ["kind = ?"], values: [kind] };
  if (query.since !== undefined) add(where, "at >= ?", query.since);
  if (query.until !== undefined) add(where, "at < ?", query.until);
  addChoice(where, ["kind"], query.kinds);
  addChoice(where, ["reason", "trigger"], query.reasons);
  addChoice(where, ["result"], query.results);
  if (kind === "pass" && query.idle !== undefined)
    add(where, `${IS_IDLE} IS ${query.idle ? "" : "NOT "}TRUE`);
  if (query.passId !== undefined) add(where, `${field("passId")} = ?`, query.passId);
  if (query.text !== undefined && query.text !== "") {
    const part = query.text.toLowerCase();
    const clauses = ["subject", "names"].map((name) => `instr(lower(${field(name)}), ?)`);
    add(where, `(${clauses.join(" OR ")})`, part, part);
  }
  return where;
}

function add(where: Where, clause: string, ...values: readonly Cell[]): void {
  where.clauses.push(clause);
  where.values.push(...values);
}

function addChoice(
  where: Where,
  fields: readonly string[],
  choices: readonly string[] | undefined,
): void {
  if (choices === undefined) return;
  const clauses = fields.map((name) => `${field(name)} IN (${choices.map(() => "?").join(", ")})`);
  add(where, `(${clauses.join(" OR ")})`, ...fields.flatMap(() => choices));
}
