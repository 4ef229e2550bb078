// Rows of the ledger and settings in the state file, read and written unchanged.

import type { Database } from "bun:sqlite";

import { text, under } from "../codec.ts";
import { type LedgerChanges, type LedgerRow, STATE_KIND } from "../ledger/ledger.ts";

/** The row of the ledger's state comes first. */
export function* readLedgerRows(db: Database): Iterable<LedgerRow> {
  // Two queries, because ordering by kind would sort what its key already orders.
  for (const comparison of ["=", "<>"]) {
    const sql = `SELECT kind, id, document FROM ledger WHERE kind ${comparison} '${STATE_KIND}'`;
    for (const row of db.query<{ kind: string; id: string; document: string }, []>(sql).iterate())
      yield [row.kind, row.id, row.document];
  }
}

/** Within the caller's transaction. */
export function writeLedgerRows(db: Database, { puts, drops }: LedgerChanges): void {
  if (puts.length + drops.length === 0) return;
  const put = db.query("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)");
  const drop = db.query("DELETE FROM ledger WHERE kind = ? AND id = ?");
  for (const [kind, id, document] of puts) put.run(kind, id, document);
  for (const [kind, id] of drops) drop.run(kind, id);
  // Random, so that a file restored from elsewhere is not taken for the known one.
  db.run(`INSERT OR REPLACE INTO setting VALUES ('${REVISION}', lower(hex(randomblob(8))))`);
}

/**
 * Within the caller's transaction. The caller continues from the same revision and drops the same rows with its next
 * write.
 */
export function forgetImageRows(db: Database, ids: readonly string[]): void {
  const drop = db.query("DELETE FROM ledger WHERE kind = 'images' AND id = ?");
  for (const id of ids) drop.run(id);
}

const REVISION = "ledger-revision";

/** Changes with each change of the ledger; "" before the first. */
export const revisionOf = (db: Database): string => readSetting(db, REVISION) ?? "";

/** Small facts by name, such as the stamp of `keep baseline --once`. */
export function readSetting(db: Database, key: string): string | null {
  const row: unknown = db.query("SELECT value FROM setting WHERE key = ?").get(key);
  return row === null ? null : settingRow.read(row);
}

const settingRow = under("value", text);

export function writeSetting(db: Database, key: string, value: string): void {
  db.query("INSERT OR REPLACE INTO setting VALUES (?, ?)").run(key, value);
}
