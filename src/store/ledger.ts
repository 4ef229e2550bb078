// The ledger in its tables: read whole, written by what changed.

import type { Database } from "bun:sqlite";

import * as v from "valibot";

import { StoreError } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import {
  durationColumn,
  flagColumn,
  instantColumn,
  marks,
  type Row,
  rowsOf,
  sameRow,
  textsColumn,
  watchedColumn,
} from "./columns.ts";
import {
  containerTable,
  imageTable,
  podTable,
  releaseTable,
  sandboxImageTable,
} from "./ledger-tables.ts";

/** Throws what SQLite throws, and `ValiError` for a row that cannot have been written by us. */
export function readLedger(db: Database): Ledger {
  const [state] = rowsOf(db, { sql: "SELECT * FROM ledger_state" }, stateShape);
  const maps = {
    images: imageTable.read(db),
    containers: containerTable.read(db),
    pods: podTable.read(db),
    sandboxImages: sandboxImageTable.read(db),
    releases: releaseTable.read(db),
  };
  if (state !== undefined) return { ...state, ...maps };
  if (Object.values(maps).every((map) => map.size === 0)) return emptyLedger;
  // Left in place, such rows would make images look older than they are.
  throw new StoreError(
    "corrupt",
    `reading the ledger in ${db.filename} failed: it has records and no state`,
  );
}

/** Inside a transaction of the caller. `previous` is what the tables hold; returns the number of rows written. */
export function writeLedger(db: Database, next: Ledger, previous: Ledger): number {
  return [writeState, ...mapTables.map((table) => table.write)]
    .map((write) => write(db, next, previous))
    .reduce((sum, written) => sum + written, 0);
}

const mapTables = [imageTable, containerTable, podTable, sandboxImageTable, releaseTable] as const;

const stateShape = v.pipe(
  v.object({
    boot_id: v.string(),
    observed_at: v.nullable(instantColumn),
    uptime: durationColumn,
    watched: watchedColumn,
    grace_until: v.nullable(watchedColumn),
    grace_reason: v.nullable(v.picklist(["boot", "containers-vanished"])),
    had_containers: flagColumn,
    keep_directories: textsColumn,
  }),
  v.transform((row) => ({
    bootId: row.boot_id,
    observedAt: row.observed_at,
    uptime: row.uptime,
    watched: row.watched,
    graceUntil: row.grace_until,
    graceReason: row.grace_reason,
    hadContainers: row.had_containers,
    keepDirectories: row.keep_directories,
  })),
);

const stateRow = (ledger: Ledger): Row => [
  1n,
  ledger.bootId,
  ledger.observedAt,
  ledger.uptime,
  ledger.watched,
  ledger.graceUntil,
  ledger.graceReason,
  ledger.hadContainers ? 1n : 0n,
  JSON.stringify(ledger.keepDirectories),
];

function writeState(db: Database, next: Ledger, previous: Ledger): number {
  const row = stateRow(next);
  // A file without a row is read as the empty ledger, whose row is not there then.
  if (previous !== emptyLedger && sameRow(row, stateRow(previous))) return 0;
  db.query(`INSERT OR REPLACE INTO ledger_state VALUES (${marks(row.length)})`).run(...row);
  return 1;
}
