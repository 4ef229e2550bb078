// The tables of the state file, and bringing a file of an older version to this one.

import type { Database } from "bun:sqlite";

import { StoreError } from "../../model/errors.ts";
import { takeOverColumns } from "./columns.ts";

/** Versions 1 to 4 had a column for each field. */
export const VERSION = 5;

const TABLES = `
  CREATE TABLE IF NOT EXISTS setting (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT UNIQUE,
    at INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    document TEXT NOT NULL
  ) STRICT;
  CREATE INDEX history_by_time ON history (kind, at);
  CREATE INDEX history_by_age ON history (kind, seq);
`;

/**
 * Brings the schema up to date in one transaction. Throws `StoreError` of kind `newer` for a file that a later version wrote,
 * without having changed it.
 */
export function migrate(db: Database, path = db.filename): void {
  if (requireKnown(db, path) === VERSION) return;
  db.run("BEGIN IMMEDIATE");
  try {
    // Read again under the lock: another process may have migrated it meanwhile.
    const version = requireKnown(db);
    if (version === 0 && db.query("SELECT 1 FROM sqlite_schema").get() !== null)
      throw new StoreError("corrupt", `opening ${db.filename} failed: another program made it`);
    if (version < VERSION) db.run(TABLES);
    if (version > 0 && version < VERSION) takeOverColumns(db);
    db.run(`PRAGMA user_version = ${VERSION}`);
    db.run("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}

/**
 * The version that the file has, 0 where it is empty; throws for one that is later than ours. `path`: of the file that
 * messages name, if it is open by a URI or as a copy.
 */
export function requireKnown(db: Database, path = db.filename): number {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  const version = row?.user_version ?? 0;
  if (version >= 0 && version <= VERSION) return version;
  throw new StoreError(
    "newer",
    `cannot open ${path}: its schema version is ${version}, and this version of crigc supports up to ${VERSION}; use the version of crigc that wrote it, or set another --state-dir`,
  );
}
