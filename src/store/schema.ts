// The tables of the state file. A file of another version is moved aside: what it says is learned again.

import type { Database } from "bun:sqlite";

import { StoreError } from "../model/errors.ts";

/** Changes with the tables, not with fields of documents. */
const VERSION = 6;

/** Rows of the history that record the removal of an image. */
export const REMOVED_IMAGE =
  "kind = 'removal' AND document ->> '$.kind' = 'image' AND document ->> '$.result' = 'removed'";

const TABLES = `
  CREATE TABLE setting (
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
  CREATE INDEX removed_images ON history (document ->> '$.subject', watched, at) WHERE ${REMOVED_IMAGE};
`;

/** Creates the tables of an empty file in one transaction; throws `StoreError` for any other file that is not of this version. */
export function createTables(db: Database, path = db.filename): void {
  if (hasTables(db, path)) return;
  db.run("BEGIN IMMEDIATE");
  try {
    // Read again under the lock: another process may have created them meanwhile.
    if (!hasTables(db, path)) {
      if (db.query("SELECT 1 FROM sqlite_schema").get() !== null)
        throw new StoreError("corrupt", `cannot open ${path}: another program made it`);
      db.run(TABLES);
      db.run(`PRAGMA user_version = ${VERSION}`);
    }
    db.run("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}

/**
 * False for an empty file; throws `StoreError` for a file of another version. `path`: of the file that messages name, if
 * it is open by a URI or as a copy.
 */
export function hasTables(db: Database, path = db.filename): boolean {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  const version = row?.user_version ?? 0;
  if (version === 0 || version === VERSION) return version === VERSION;
  const message = `cannot read ${path}: its schema version is ${version}, and this version of crigc uses ${VERSION}`;
  throw new StoreError("corrupt", message);
}
