// The state file: its tables, and how it is opened for writing or for reading, and moved aside if it is broken.

import { constants, Database, SQLiteError } from "bun:sqlite";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

import { StoreError } from "../model/errors.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";

export interface StatePaths {
  readonly directory: string;
  readonly database: string;
  readonly wal: string;
  readonly shm: string;
  /** The stamps that the file and its log had when the last writer closed them. */
  readonly closed: string;
}

export function statePaths(directory: string): StatePaths {
  const database = `${directory.replace(/\/+$/, "")}/crigc.db`;
  return {
    directory,
    database,
    wal: `${database}-wal`,
    shm: `${database}-shm`,
    closed: `${database}-closed`,
  };
}

const statOf = (path: string) => statSync(path, { bigint: true, throwIfNoEntry: false });

/** `null` if it does not exist. Throws if that cannot be determined. */
export const sizeOf = (path: string): number | null =>
  statSync(path, { throwIfNoEntry: false })?.size ?? null;

/** A pipe would never open. */
function refuseOtherThanFiles(paths: readonly string[]): void {
  const found = paths.find((path) => statOf(path)?.isFile() === false);
  if (found !== undefined) throw broken(found, "it is not a regular file");
}

const broken = (path: string, why: string): StoreError =>
  new StoreError("corrupt", `cannot open ${path}: ${why}`);

/** Distinguishes the open files from others that replaced them. */
export const identityOf = ({ database, wal, shm }: StatePaths): string =>
  [database, wal, shm].map((path) => `${statOf(path)?.dev}:${statOf(path)?.ino}`).join(" ");

/** Changes whenever the file is written, replaced or restored; `null` if it does not exist. */
function stampOf(path: string): string | null {
  const found = statOf(path);
  return found === undefined ? null : `${found.dev}:${found.ino}:${found.size}:${found.ctimeNs}`;
}

/** True if all writers closed the file and it is unchanged since. */
export function isClosed(paths: StatePaths): boolean {
  try {
    refuseOtherThanFiles([paths.closed]);
    return readFileSync(paths.closed, "utf8") === closedStamp(paths);
  } catch {
    return false;
  }
}

/** A log stays if a reader has the file open at its end. */
const closedStamp = ({ database, wal }: StatePaths): string =>
  `${stampOf(database)} ${(sizeOf(wal) ?? 0) === 0 ? null : stampOf(wal)}`;

/** By the last process to close the file. */
export const markClosed = (paths: StatePaths): void =>
  writeFileSync(paths.closed, closedStamp(paths), { mode: 0o600 });

/** Removes the file, if there is one, also from the disk. */
export function removeForGood(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    // Another process may have removed it just now.
    if (statOf(path) === undefined) return;
    throw error;
  }
  const directory = openSync(dirname(path), "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** Creates what is missing; throws errors of SQLite, the files or the schema. */
export function openForWriting(paths: StatePaths, busyMs: number): Database {
  mkdirSync(paths.directory, { recursive: true, mode: 0o700 });
  refuseOtherThanFiles([paths.database, paths.wal, paths.shm]);
  const bytes = sizeOf(paths.database);
  if (bytes === 0) throw broken(paths.database, "it has 0 bytes, as after a crash of the machine");
  closeSync(openSync(paths.database, "a", 0o600));
  const db = new Database(paths.database, { readwrite: true, create: false });
  try {
    db.run(`PRAGMA busy_timeout = ${busyMs}`);
    // Before any change: a file of another version is moved aside as it is.
    hasTables(db);
    // A commit writes to the page cache, so a killed process loses nothing that it committed; only a checkpoint waits
    // for the disk, and the writer chooses when.
    db.run("PRAGMA journal_mode = WAL");
    db.run("PRAGMA synchronous = NORMAL");
    db.run("PRAGMA wal_autocheckpoint = 0");
    db.run("PRAGMA trusted_schema = OFF");
    db.run("PRAGMA cell_size_check = ON");
    createTables(db);
    return db;
  } catch (error) {
    db.close();
    // A file that could not be created on a full disk must not look like a broken one.
    if (bytes === null && sizeOf(paths.database) === 0) unlinkSync(paths.database);
    throw error;
  }
}

/**
 * Opens the file without creating or changing any, next to a running writer or after a killed one; an empty database if
 * there is none. Throws errors of SQLite, the files or the schema.
 */
export function openForReading(paths: StatePaths): Database {
  // A writer that starts or ends meanwhile changes which files exist; the next attempt sees them.
  const attempts = 3;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return openAsFound(paths);
    } catch (error) {
      // A log with a broken header: SQLite waited ten seconds for a dead writer.
      if (error instanceof SQLiteError && error.code === "SQLITE_PROTOCOL") return openCopy(paths);
      if (error instanceof StoreError || attempt === attempts) throw error;
    }
  }
}

export function openInMemory(): Database {
  const db = new Database(":memory:");
  createTables(db);
  return db;
}

function openAsFound(paths: StatePaths): Database {
  refuseOtherThanFiles([paths.database, paths.wal, paths.shm]);
  const bytes = sizeOf(paths.database);
  if (bytes === null || bytes === 0) return openInMemory();
  const walBytes = sizeOf(paths.wal);
  const hasShm = sizeOf(paths.shm) !== null;
  // SQLite cannot read a log without its index in place without creating one; and it waits half a minute in vain for a
  // log that ends after its header, as a power cut leaves it.
  if (walBytes !== null && walBytes > 0 && (!hasShm || walBytes <= walHeaderBytes))
    return openCopy(paths);
  // Without a log nothing writes, and the file is complete; with one, the index is only read, and rebuilt in memory if
  // its writer is dead.
  const db = openUri(
    walBytes !== null && hasShm
      ? `${uriOf(paths.database)}?mode=ro&readonly_shm=1`
      : `${uriOf(paths.database)}?immutable=1`,
  );
  try {
    db.run(`PRAGMA busy_timeout = ${readBusyMs}`);
    if (hasTables(db, paths.database)) return db;
    db.close();
    return openInMemory();
  } catch (error) {
    db.close();
    throw error;
  }
}

const readBusyMs = 2000;
const walHeaderBytes = 32;

/** A private copy may be recovered; it is unlinked once it is open, or does not fit on the disk. */
function openCopy(paths: StatePaths): Database {
  const directory = mkdtempSync(join(tmpdir(), "crigc-"));
  try {
    for (const path of [paths.database, paths.wal].filter((it) => sizeOf(it) !== null)) {
      const copy = join(directory, basename(path));
      copyFileSync(path, copy);
      chmodSync(copy, 0o600);
    }
    const db = new Database(statePaths(directory).database, { readwrite: true, create: false });
    createTables(db, paths.database);
    return db;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const openUri = (uri: string): Database =>
  new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);

const uriOf = (path: string): string => `file:${path.split("/").map(encodeURIComponent).join("/")}`;

/** Changes with the tables, and with fields of documents that earlier versions cannot read. */
const VERSION = 7;

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

export const inTransaction = <Result>(db: Database, work: () => Result): Result =>
  db.transaction(work).immediate();

/** Creates the tables of an empty file in one transaction; throws `StoreError` for any other file that is not of this version. */
export function createTables(db: Database, path = db.filename): void {
  if (hasTables(db, path)) return;
  inTransaction(db, () => {
    // Read again under the lock: another process may have created them meanwhile.
    if (hasTables(db, path)) return;
    if (db.query("SELECT 1 FROM sqlite_schema").get() !== null)
      throw broken(path, "another program made it");
    db.run(TABLES);
    db.run(`PRAGMA user_version = ${VERSION}`);
  });
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

const brokenMax = 3;
const BROKEN = /^crigc\.db\.broken-(\d+)-/;

/** Moves a broken file aside under a new name. Returns the file's new path. Its log and index move with it, so that SQLite can still read them together. */
export function moveAside(paths: StatePaths, now: Instant): string {
  const before = readdirSync(paths.directory).filter((name) => BROKEN.test(name));
  const numberOf = (name: string): number => Number(BROKEN.exec(name)?.[1]);
  // Numbered, because the wall clock may be wrong and two files may break within a second; the time is for humans.
  const number = Math.max(0, ...before.map(numberOf)) + 1;
  const time = toRfc3339(now).replace(/\.\d+|[-:]/g, "");
  const aside = `${paths.database}.broken-${number}-${time}`;
  for (const suffix of ["", "-wal", "-shm"]) {
    const from = `${paths.database}${suffix}`;
    if (sizeOf(from) !== null) renameSync(from, `${aside}${suffix}`);
  }
  for (const name of before)
    if (numberOf(name) <= number - brokenMax) unlinkSync(`${paths.directory}/${name}`);
  return aside;
}

/** Small facts by name, such as the stamp of `keep baseline --once`. */
export const readSetting = (db: Database, key: string): string | null =>
  db.query<{ value: string }, [string]>("SELECT value FROM setting WHERE key = ?").get(key)
    ?.value ?? null;

export function writeSetting(db: Database, key: string, value: string): void {
  db.query("INSERT OR REPLACE INTO setting VALUES (?, ?)").run(key, value);
}
