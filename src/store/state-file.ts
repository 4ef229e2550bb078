// The only code that writes the state file, in a separate process, so that nothing else waits for its disk.

import type { Database } from "bun:sqlite";

import { assertNever, type StoreErrorKind } from "../model/errors.ts";
import { rowJson } from "../model/exact-json.ts";
import { type RecentHistory, recentHistory } from "../model/history.ts";
import type { Instant } from "../model/time.ts";
import {
  identityOf,
  inTransaction,
  isClosed,
  markClosed,
  moveAside,
  openForReading,
  openForWriting,
  removeForGood,
  sizeOf,
  type StatePaths,
  statePaths,
  writeSetting,
} from "./connection.ts";
import { storeError } from "./errors.ts";
import { newestSamples, prune, writeRow } from "./history.ts";
import {
  type LedgerRow,
  readLedgerRows,
  revisionOf,
  watchedIn,
  writeLedgerRows,
} from "./ledger-rows.ts";
import { recordRegrets, regretFiguresIn } from "./regrets.ts";
import type { LedgerWrite, RecordsWrite, StateReply, StateRequest } from "./state-request.ts";

interface StateFileOptions {
  /** `--state-dir`. */
  readonly directory: string;
  /** The wall clock. */
  readonly now: () => Instant;
}

const verbs: Readonly<Record<StateRequest["kind"], string>> = {
  read: "read",
  refresh: "read",
  records: "write",
  ledger: "write",
  close: "close",
  "put-aside": "move aside",
};

const busyMs = 250;
/** A transaction of another process takes milliseconds; a tool that keeps the file locked must not block crigc longer. */
const openBusyMs = 2000;
/** Above this size the write-ahead log is folded into the file. */
const walBytesMax = 4 * 1024 * 1024;
const rowsAtOnce = 500;

const DONE = { kind: "done" } as const;
const FRESH = { kind: "fresh", moved: null } as const;

const recentText = (recent: RecentHistory): string => rowJson(recentHistory.write(recent));

type OnRows = (rows: readonly LedgerRow[]) => void;

export class StateFile {
  readonly #options: StateFileOptions;
  readonly #paths: StatePaths;
  #db: Database | null = null;
  #identity: string | null = null;
  /** Whether the last records were written; `null`: none came, and those before may have gone to a process that ended. */
  #hasRecords: boolean | null = null;
  /** The last changes of the ledger were not written. */
  #isBehind = false;
  /** The revision that the last write of the ledger failed to make; what builds on it is refused. */
  #unwritten: { readonly revision: string; readonly reply: StateReply } | null = null;
  /** The file was closed when this process opened it. */
  #wasClosed: boolean | null = null;

  constructor(options: StateFileOptions) {
    this.#options = options;
    this.#paths = statePaths(options.directory);
  }

  /** Never throws. */
  handle(request: StateRequest, onRows: OnRows): StateReply {
    const reply = this.#handle(request, onRows);
    if (request.kind === "ledger") {
      this.#isBehind ||= reply.kind === "failed";
      this.#unwritten = reply.kind === "failed" ? { revision: request.to, reply } : null;
    }
    if (request.kind === "records") this.#hasRecords = reply.kind === "done";
    return reply;
  }

  #handle(request: StateRequest, onRows: OnRows): StateReply {
    try {
      switch (request.kind) {
        case "read":
          return this.#read(onRows);
        case "refresh":
          return this.#refresh(request.revision, onRows);
        case "records":
          return this.#writeRecords(request);
        case "ledger":
          return this.#writeLedger(request, onRows);
        case "close":
          return this.#close(request.isLast);
        case "put-aside":
          return this.#putAside(request.message);
        default:
          return assertNever(request);
      }
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  #read(onRows: OnRows): StateReply {
    const wasClosed = isClosed(this.#paths);
    using db = openForReading(this.#paths);
    return { ...this.#tell(db, onRows), isClosed: wasClosed };
  }

  #tell(db: Database, onRows: OnRows): Extract<StateReply, { kind: "read" }> {
    let rows: LedgerRow[] = [];
    for (const row of readLedgerRows(db)) {
      rows.push(row);
      if (rows.length < rowsAtOnce) continue;
      onRows(rows);
      rows = [];
    }
    onRows(rows);
    const recent = { samples: newestSamples(db), regrets: regretFiguresIn(db) };
    const told = { revision: revisionOf(db), recent: recentText(recent) };
    return { kind: "read", ...told, isClosed: this.#wasClosed === true };
  }

  #refresh(known: string | null, onRows: OnRows): StateReply {
    const db = this.#connected();
    const revision = revisionOf(db);
    if (revision === known) return DONE;
    return revision === "" ? FRESH : this.#tell(db, onRows);
  }

  #writeRecords({ isFirst, records }: RecordsWrite): StateReply {
    if (!isFirst && this.#hasRecords !== true)
      return { kind: "failed", error: "write", message: "records before these are not written" };
    const db = this.#connected();
    inTransaction(db, () => {
      for (const row of records) writeRow(db, row);
    });
    return DONE;
  }

  /** Answers with the file's content if another process wrote it. */
  #writeLedger({ from, to, changes, tidy }: LedgerWrite, onRows: OnRows): StateReply {
    if (from !== null && from === this.#unwritten?.revision) return this.#unwritten.reply;
    const db = this.#connected();
    const reply = inTransaction(db, (): StateReply => {
      const revision = revisionOf(db);
      const isKnown = revision === from;
      if (isKnown || changes.length > 0) this.#isBehind = !isKnown;
      const before = watchedIn(db);
      if (isKnown && changes.length > 0) writeLedgerRows(db, changes, to);
      if (isKnown && before !== null) recordRegrets(db, changes, before);
      if (isKnown || changes.length === 0) return DONE;
      return revision === "" ? FRESH : this.#tell(db, onRows);
    });
    if (!tidy) return reply;
    this.#tidy(db);
    return reply === DONE
      ? { ...DONE, recent: recentText({ regrets: regretFiguresIn(db) }) }
      : reply;
  }

  /** The last process to close the file leaves a copy of its stamp beside it. */
  #close(isLast: boolean): StateReply {
    if (this.#isBehind || this.#hasRecords === false)
      return { kind: "failed", error: "write", message: "not everything is written" };
    this.#connected();
    this[Symbol.dispose]();
    if (isLast) markClosed(this.#paths);
    return DONE;
  }

  #tidy(db: Database): void {
    const observed = watchedIn(db);
    if (observed !== null) prune(db, observed);
    if ((sizeOf(this.#paths.wal) ?? 0) < walBytesMax) return;
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    // The first write to an emptied log waits for the disk too: here, not in the next pass.
    writeSetting(db, "checkpointed-at", this.#options.now().toString());
  }

  /** The connection, reopened if it was dropped or one of its files was replaced. */
  #connected(): Database {
    if (this.#db !== null && identityOf(this.#paths) === this.#identity) return this.#db;
    const isFirst = this.#db === null;
    this[Symbol.dispose]();
    this.#wasClosed ??= isClosed(this.#paths);
    // Before anything else, because it needs no room on the disk.
    removeForGood(this.#paths.closed);
    this.#db = openForWriting(this.#paths, isFirst ? openBusyMs : busyMs);
    this.#db.run(`PRAGMA busy_timeout = ${busyMs}`);
    this.#identity = identityOf(this.#paths);
    return this.#db;
  }

  #failed(request: StateRequest, thrown: unknown): StateReply {
    const { database } = this.#paths;
    const attempt = verbs[request.kind];
    const error = storeError(`${attempt} ${database}`, thrown);
    if (error.kind !== "busy" && error.kind !== "full") this[Symbol.dispose]();
    // A file that cannot even be read is broken or not crigc's.
    const isBroken =
      error.kind === "corrupt" || (error.kind === "unreadable" && request.kind === "read");
    if (isBroken) return this.#putAside(error.message, error.kind);
    return { kind: "failed", error: error.kind, message: error.message };
  }

  #putAside(message: string, kind: StoreErrorKind = "corrupt"): StateReply {
    this[Symbol.dispose]();
    try {
      const aside = moveAside(this.#paths, this.#options.now());
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

  [Symbol.dispose](): void {
    try {
      this.#db?.close();
    } catch {
      // The file is missing or broken, and the requester knows its content.
    }
    this.#db = null;
  }
}
