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
import { renewRemoved } from "./ledger-rows.ts";

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

interface HistoryCodec<Row> {
  readonly codec: Codec<Row>;
  readonly at: (row: Row) => Instant;
  /** Records with the same key are one row; absent: every record is a new row. */
  readonly key?: (row: Row) => string;
}

const historyKinds: { readonly [Kind in HistoryKind]: HistoryCodec<RowOf<Kind>> } = {
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
  /** Absent: all that the history keeps. */
  readonly limit?: number;
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
  const oneOf = (choices: readonly string[] | undefined) =>
    choices === undefined ? null : JSON.stringify(choices);
  const rows = db.query<{ document: string }, Record<string, Cell>>(SELECT).all({
    $kind: kind,
    $since: query.since ?? -(2n ** 63n),
    $until: query.until ?? 2n ** 63n - 1n,
    $kinds: oneOf(query.kinds),
    $reasons: oneOf(query.reasons),
    $results: oneOf(query.results),
    $idle: query.idle ?? null,
    $pass: query.passId ?? null,
    $text: query.text?.toLowerCase() ?? "",
    $limit: query.limit === undefined ? -1 : Math.max(0, Math.trunc(query.limit)),
  });
  return rows.map(({ document }) => historyKinds[kind].codec.read(JSON.parse(document)));
}

type Cell = string | bigint | number | boolean | null;

const field = (name: string): string => `document ->> '$.${name}'`;
const isOneOf = (name: string, choices: string): string =>
  `${field(name)} IN (SELECT value FROM json_each(${choices}))`;

/** A condition without its parameter holds. Most passes have nothing to do and would hide the others. */
const SELECT = `SELECT document FROM history
  WHERE kind = $kind AND at >= $since AND at < $until
    AND ($kinds IS NULL OR ${isOneOf("kind", "$kinds")})
    AND ($reasons IS NULL OR ${isOneOf("reason", "$reasons")} OR ${isOneOf("trigger", "$reasons")})
    AND ($results IS NULL OR ${isOneOf("result", "$results")})
    AND ($pass IS NULL OR ${field("passId")} = $pass)
    AND ($text = '' OR instr(lower(${field("subject")}), $text) OR instr(lower(${field("names")}), $text))
    AND ($idle IS NULL OR $idle = ifnull(${field("imagesEnd")} = 'nothing-to-do'
      AND ${field("error")} IS NULL AND ${field("endedAt")} IS NOT NULL
      AND ${field("removed")} + ${field("failed")} = 0, FALSE))
  ORDER BY at DESC, seq DESC LIMIT $limit`;

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

/** How many disk samples: more than a day of passes every five minutes on three filesystems. */
export const SAMPLES_KEPT = 1_000;

/** In the order in which they were recorded: their times follow the wall clock, which can be set. */
export const newestSamples = (db: Database): readonly DiskSample[] =>
  newestRows(db, "sample", { from: "history WHERE kind = 'sample'", limit: SAMPLES_KEPT });

/**
 * Rows of this kind, oldest first, without invalid ones: for what no decision depends on. `from`: table and condition,
 * answered from an index alone, because most documents are of other rows.
 */
export const newestRows = <Kind extends HistoryKind>(
  db: Database,
  kind: Kind,
  { from, limit }: { readonly from: string; readonly limit: number },
): readonly RowOf<Kind>[] =>
  db
    .query<{ document: string }, []>(
      `SELECT document FROM history
       WHERE seq IN (SELECT seq FROM ${from} ORDER BY seq DESC LIMIT ${limit}) ORDER BY seq`,
    )
    .all()
    .flatMap(({ document }) => {
      try {
        return [historyKinds[kind].codec.read(JSON.parse(document))];
      } catch {
        return [];
      }
    });

/** A record as a row of the state file. */
export interface HistoryRow {
  readonly kind: HistoryKind;
  /** Records with the same key are one row; `null`: each record is a new row. */
  readonly key: string | null;
  readonly at: string;
  /** Observed time when it was recorded, as digits. */
  readonly watched: string;
  readonly document: string;
}

export function historyRow<Kind extends HistoryKind>(
  { kind, row }: HistoryRecord<Kind>,
  watched: ObservedTime,
): HistoryRow {
  const { codec, key, at } = historyKinds[kind];
  return {
    kind,
    key: key === undefined ? null : `${kind} ${key(row)}`,
    at: at(row).toString(),
    watched: watched.toString(),
    document: rowJson(codec.write(row)),
  };
}

/**
 * A pass that began is replaced by the pass that ended, and a removal by one whose space came late; a regret never
 * changes. `watched`: a process that could not read the ledger yet counts it from elsewhere.
 */
export function writeRow(db: Database, row: HistoryRow): void {
  const { kind, key, at, watched, document } = row;
  db.query(
    `INSERT INTO history (kind, key, at, watched, document) VALUES (
       ?, ?, ?, max(?, ifnull((SELECT watched FROM history ORDER BY seq DESC LIMIT 1), 0)), ?)
     ON CONFLICT (key) DO UPDATE SET document = excluded.document WHERE kind <> 'regret'`,
  ).run(kind, key, BigInt(at), BigInt(watched), document);
  if (kind === "removal" && key !== null) renewRemoved(db, key);
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
