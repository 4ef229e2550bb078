// Handles requests to the state file. The only code that writes it, in a process of its own, so that nothing else waits
// for its disk.

import type { Database } from "bun:sqlite";

import { assertNever } from "../../model/assert.ts";
import type { StoreErrorKind } from "../../model/errors.ts";
import type { StateFiles } from "../../model/ports.ts";
import { type Instant, watched } from "../../model/time.ts";
import { storeError } from "../errors.ts";
import { prune, readRecentHistory, writeRow } from "../history/history.ts";
import type { LedgerRow } from "../ledger/ledger.ts";
import { moveAside } from "./broken.ts";
import { openForReading, openForWriting, type StatePaths, statePaths } from "./connection.ts";
import type {
  StateAppend,
  StateChannel,
  StateReply,
  StateRequest,
  StateWrite,
} from "./state-request.ts";
import {
  forgetImageRows,
  readLedgerRows,
  revisionOf,
  writeLedgerRows,
  writeSetting,
} from "./state-rows.ts";

export interface StateFileOptions {
  /** `--state-dir`. */
  readonly directory: string;
  readonly files: StateFiles;
  /** The wall clock. */
  readonly now: () => Instant;
}

/** Answers within the calling process. */
export function directChannel(options: StateFileOptions): StateChannel {
  const file = new StateFile(options);
  return {
    ask: async (request, onRows) => file.handle(request, onRows),
    close: async (last) => {
      for (const request of last) file.handle(request, () => undefined);
      file[Symbol.dispose]();
    },
  };
}

const verbs: Readonly<Record<StateRequest["kind"], string>> = {
  read: "read",
  open: "open",
  refresh: "read",
  write: "write",
  append: "write",
  "put-aside": "move aside",
};

const busyMs = 250;
/**
 * A transaction of another process takes milliseconds; a tool that keeps the file locked must not block crigc for
 * longer.
 */
const openBusyMs = 2000;
/** Above this size the write-ahead log is folded into the file. */
const walBytesMax = 4 * 1024 * 1024;
const rowsAtOnce = 500;

export class StateFile {
  readonly #options: StateFileOptions;
  readonly #paths: StatePaths;
  #db: Database | null = null;
  #identity: string | null = null;
  /** The revision in the last reply; `null` if the request failed. */
  #told: string | null = null;
  /** The last append failed. */
  #refusal: StateReply | null = null;

  constructor(options: StateFileOptions) {
    this.#options = options;
    this.#paths = statePaths(options.directory);
  }

  /** Never throws. */
  handle(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    const reply = this.#reply(request, onRows);
    if (request.kind !== "append")
      this.#told = reply.kind === "done" || reply.kind === "read" ? reply.revision : null;
    return reply;
  }

  #reply(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    try {
      switch (request.kind) {
        case "read":
          return this.#read(onRows);
        case "open":
          return { kind: "done", revision: revisionOf(this.#connected()) };
        case "refresh":
          return this.#refresh(request.known, onRows);
        case "write":
          return this.#write(request, onRows);
        case "append":
          return this.#append(request);
        case "put-aside":
          return this.#putAside(request.message);
        default:
          return assertNever(request);
      }
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  /** For a command that does nothing else. Throws `StoreError`. */
  setSetting(key: string, value: string): void {
    try {
      writeSetting(this.#connected(), key, value);
    } catch (error) {
      throw storeError(`write ${this.#paths.database}`, error);
    }
  }

  [Symbol.dispose](): void {
    this.#drop();
  }

  #read(onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    using db = openForReading(this.#paths, this.#options.files);
    return this.#tell(db, onRows);
  }

  #tell(db: Database, onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    let rows: LedgerRow[] = [];
    for (const row of readLedgerRows(db)) {
      rows.push(row);
      if (rows.length < rowsAtOnce) continue;
      onRows(rows);
      rows = [];
    }
    onRows(rows);
    return {
      kind: "read",
      revision: revisionOf(db),
      recent: readRecentHistory(db),
    };
  }

  #refresh(known: string, onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    const db = this.#connected();
    const revision = revisionOf(db);
    if (revision === known) return { kind: "done", revision };
    return revision === "" ? { kind: "fresh", moved: null } : this.#tell(db, onRows);
  }

  #write(request: StateWrite, onRows: (rows: readonly LedgerRow[]) => void): StateReply {
    const db = this.#connected();
    return inTransaction(db, () => {
      const revision = revisionOf(db);
      if (revision === (request.known ?? this.#told)) {
        writeLedgerRows(db, request.changes);
        return { kind: "done", revision: revisionOf(db) };
      }
      return revision === "" ? { kind: "fresh", moved: null } : this.#tell(db, onRows);
    });
  }

  #append(request: StateAppend): StateReply {
    if (this.#refusal !== null && !request.isFirst) return this.#refusal;
    try {
      const db = this.#connected();
      inTransaction(db, () => {
        for (const row of request.records) writeRow(db, row, request.watched);
        forgetImageRows(db, request.forgotten);
      });
      if (request.tidy) this.#tidy(db, request.watched);
      this.#refusal = null;
      return { kind: "done", revision: "" };
    } catch (error) {
      const reply = this.#failed(request, error);
      const message = reply.kind === "fresh" ? (reply.moved ?? "") : "";
      this.#refusal =
        reply.kind === "failed" ? reply : { kind: "failed", error: "corrupt", message };
      return reply;
    }
  }

  #tidy(db: Database, observed: string): void {
    prune(db, watched(BigInt(observed)));
    if ((this.#options.files.sizeBytes(this.#paths.wal) ?? 0) < walBytesMax) return;
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    // The first write to an emptied log waits for the disk too: here, not in the next pass.
    writeSetting(db, "checkpointed-at", this.#options.now().toString());
  }

  /** The connection, reopened if it was dropped or the file was replaced. */
  #connected(): Database {
    const { files } = this.#options;
    if (this.#db !== null && files.identity(this.#paths.database) === this.#identity)
      return this.#db;
    const isFirst = this.#db === null;
    this.#drop();
    this.#db = openForWriting(this.#paths, files, isFirst ? openBusyMs : busyMs);
    this.#db.run(`PRAGMA busy_timeout = ${busyMs}`);
    this.#identity = files.identity(this.#paths.database);
    return this.#db;
  }

  #failed(request: StateRequest, thrown: unknown): StateReply {
    const { database } = this.#paths;
    const attempt = verbs[request.kind];
    const error = storeError(`${attempt} ${database}`, thrown);
    if (error.kind !== "busy" && error.kind !== "full") this.#drop();
    // A file that cannot even be read is broken or not crigc's.
    const isBroken =
      error.kind === "corrupt" || (error.kind === "unreadable" && request.kind === "read");
    return isBroken
      ? this.#putAside(error.message, error.kind)
      : { kind: "failed", error: error.kind, message: error.message };
  }

  #putAside(message: string, kind: StoreErrorKind = "corrupt"): StateReply {
    const { files, now } = this.#options;
    this.#drop();
    try {
      const aside = moveAside(this.#paths, files, now());
      return { kind: "fresh", moved: `${message}; the file is now ${aside}` };
    } catch (thrown) {
      const error = storeError(`move ${this.#paths.database} aside`, thrown);
      return {
        kind: "failed",
        error: kind === "corrupt" ? error.kind : kind,
        message: `${message}; ${error.message}`,
      };
    }
  }

  #drop(): void {
    try {
      this.#db?.close();
    } catch {
      // The file is missing or broken, and the requester knows its content.
    }
    this.#db = null;
  }
}

function inTransaction<Result>(db: Database, work: () => Result): Result {
  db.run("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.run("COMMIT");
    return result;
  } catch (error) {
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}
