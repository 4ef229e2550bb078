// Takes over a state file of before the documents, which had a table for each kind of record and a column for each field.

import type { Database } from "bun:sqlite";

import { emptyLedger, type Ledger } from "../../model/ledger.ts";
import type { HistoryKind, HistoryRecord } from "../history/history-records.ts";
import { historyRow, writeRow } from "../history/history.ts";
import { ledgerChanges } from "../ledger/ledger.ts";
import { writeLedgerRows } from "./state-rows.ts";

/** A field by the name that it has in the model: integers are of any size, whatever the model makes of them. */
type Row = Readonly<Record<string, unknown>>;

/** Columns that hold JSON. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  ledger_state: ["keep_directories"],
  ledger_image: ["earlier_names"],
  ledger_container: ["image_volumes"],
  ledger_pod: [],
  ledger_sandbox_image: [],
  ledger_release: [],
  pass: ["signals", "steps"],
  removal: ["names"],
  event: [],
  disk_sample: ["roles"],
};

const HISTORY: readonly (readonly [table: string, kind: HistoryKind])[] = [
  ["pass", "pass"],
  ["removal", "removal"],
  ["event", "event"],
  ["disk_sample", "sample"],
];

/** Inside a transaction of the caller, who has made the tables of documents. */
export function takeOverColumns(db: Database): void {
  const [state] = [...rowsOf(db, "ledger_state")];
  const ledger: Ledger = { ...emptyLedger, ...state, ...mapsIn(db) };
  for (const [table, kind] of HISTORY)
    for (const { steps, ...row } of rowsOf(db, table)) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- columns were named after the fields
      const record = { kind, row: { ...row, steps: stepsIn(steps) } } as unknown as HistoryRecord;
      writeRow(db, historyRow(record), ledger.watched.toString());
    }
  if (state !== undefined) writeLedgerRows(db, ledgerChanges(ledger, emptyLedger));
  for (const table of Object.keys(TABLES)) db.run(`DROP TABLE IF EXISTS ${table}`);
}

function mapsIn(db: Database): Partial<Ledger> {
  const mapOf = (table: string, key: string, value: (row: Row) => unknown) =>
    new Map([...rowsOf(db, table)].map((row) => [row[key], value(row)]));
  const releases = mapOf("ledger_release", "runtime", (row) => row);
  // One removal made a runtime delayed for good, which images that share layers brought about; it is learned anew.
  for (const [runtime, row] of releases)
    if (Object(row).lateRemovals > 0n) releases.delete(runtime);
  const maps: Record<string, ReadonlyMap<unknown, unknown>> = {
    images: mapOf("ledger_image", "id", imageOf),
    containers: mapOf("ledger_container", "id", (row) => row),
    pods: mapOf("ledger_pod", "uid", (row) => row),
    sandboxImages: mapOf("ledger_sandbox_image", "id", ({ name }) => name),
    releases,
  };
  return maps;
}

const imageOf = ({ ghostSince, ghostAttempts, ghostRetryWatched, ...row }: Row) => ({
  ...row,
  earlierNames: row["earlierNames"] ?? [],
  ghost:
    ghostSince === null
      ? null
      : { since: ghostSince, attempts: ghostAttempts, retryWatched: ghostRetryWatched },
});

const stepsIn = (steps: unknown) =>
  Array.isArray(steps)
    ? steps.map((step) => ({ ...step, startedAt: BigInt(step.startedAt), took: BigInt(step.took) }))
    : [];

/** One by one: a history may have 100,000. */
function* rowsOf(db: Database, table: string): Iterable<Row> {
  if (db.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) === null) return;
  const rows = db.query<Row, []>(`SELECT * FROM ${table}`).safeIntegers(true).iterate();
  const valueOf = (column: string, held: unknown): unknown => {
    if (typeof held === "string" && TABLES[table]?.includes(column) === true)
      return JSON.parse(held);
    if (typeof held !== "bigint") return held;
    if (column === "dry_run" || column === "had_containers") return held === 1n;
    // Sizes stood as their two's complement.
    return /bytes|inodes/.test(column) ? BigInt.asUintN(64, held) : held;
  };
  for (const row of rows)
    yield Object.fromEntries(
      Object.entries(row).map(([column, held]) => [
        column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
        valueOf(column, held),
      ]),
    );
}
