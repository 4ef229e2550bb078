// The only code that writes the state file, in a separate process, so that nothing else waits for its disk.

import type { Database } from "bun:sqlite";

import { assertNever } from "../model/assert.ts";
import type { StoreErrorKind } from "../model/errors.ts";
import { type Instant, watched } from "../model/time.ts";
import {
  closedStamp,
  inTransaction,
  isClosed,
  moveAside,
  openForReading,
  openForWriting,
  type StatePaths,
  statePaths,
  writeSetting,
} from "./connection.ts";
import { storeError } from "./errors.ts";
import { files } from "./files.ts";
import { prune, readRecentHistory, writeRow } from "./history.ts";
import { type LedgerRow, readLedgerRows, revisionOf, writeLedgerRows } from "./ledger-rows.ts";
import { dropMarks, marksIn, OwnMark } from "./marks.ts";
import type { FileState, StateReply, StateRequest, StateWrite } from "./state-request.ts";
import { type TraceRequest, TraceWriter } from "./trace.ts";

interface StateFileOptions {
  /** `--state-dir`. */
  readonly directory: string;
  /** The wall clock. */
  readonly now: () => Instant;
  /** Of this process's mark; absent: it writes only settings. */
  readonly writer?: string | undefined;
}

const verbs: Readonly<Record<StateRequest["kind"], string>> = {
  read: "read",
  open: "open",
  refresh: "read",
  write: "write",
  trace: "write the trace to",
  close: "close",
  "put-aside": "move aside",
};

const busyMs = 250;
/** A transaction of another process takes milliseconds; a tool that keeps the file locked must not block crigc longer. */
const openBusyMs = 2000;
/** Above this size the write-ahead log is folded into the file. */
const walBytesMax = 4 * 1024 * 1024;
const rowsAtOnce = 500;

type OnRows = (rows: readonly LedgerRow[]) => void;

export class StateFile {
  readonly #options: StateFileOptions;
  readonly #paths: StatePaths;
  #db: Database | null = null;
  #identity: string | null = null;
  /** Of the last reply that brought the content. */
  #basis: string | null = null;
  /** The revision of the ledger that the requester knows; `null`: none. */
  #known: string | null = null;
  readonly #mark: OwnMark;
  readonly #tracer = new TraceWriter();
  /** The last write failed. */
  #refusal: Extract<StateReply, { kind: "failed" }> | null = null;
  /** The changes of the last write were not written. */
  #isBehind = false;
  /** The file was closed when this process opened it. */
  #wasClosed: boolean | null = null;

  constructor(options: StateFileOptions) {
    this.#options = options;
    this.#paths = statePaths(options.directory);
    this.#mark = new OwnMark(options.writer ?? null);
  }

  /** Never throws. */
  handle(request: StateRequest, onRows: OnRows): StateReply {
    const reply = this.#handle(request, onRows);
    // Only what the requester is told counts.
    if (reply.kind === "fresh" || reply.kind === "read") this.#basis = reply.basis;
    if (reply.kind === "fresh") this.#known = "";
    return reply;
  }

  #handle(request: StateRequest, onRows: OnRows): StateReply {
    try {
      switch (request.kind) {
        case "read":
          return this.#read(onRows);
        case "open":
          return this.#open(request.dead);
        case "refresh":
          return this.#refresh(onRows);
        case "write":
          return this.#write(request, onRows);
        case "trace":
          return this.#trace(request);
        case "close":
          return this.#close();
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
      if (this.#wasClosed === true) this.#close();
    } catch (error) {
      throw storeError(`write ${this.#paths.database}`, error);
    }
  }

  #read(onRows: OnRows): StateReply {
    const closed = isClosed(this.#paths);
    using db = openForReading(this.#paths);
    const reply = this.#tell(db, onRows);
    this.#known = revisionOf(db);
    return { ...reply, isClosed: closed };
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
    const basis = crypto.randomUUID();
    return { kind: "read", basis, recent: readRecentHistory(db), ...this.#mark.state(db) };
  }

  #open(dead: readonly string[]): StateReply {
    const state = this.#mark.written(this.#connected(), (db) => dropMarks(db, dead));
    return { kind: "done", ...state };
  }

  #refresh(onRows: OnRows): StateReply {
    const db = this.#connected();
    const revision = revisionOf(db);
    if (revision === this.#known) return { kind: "done", ...this.#mark.state(db) };
    if (revision === "") return this.#fresh(null);
    const reply = this.#tell(db, onRows);
    this.#known = revision;
    return reply;
  }

  #write(request: StateWrite, onRows: OnRows): StateReply {
    const refusal = request.isFirst ? null : this.#refusal;
    if (refusal !== null && !refusal.hasRecords) return refusal;
    let state: FileState | null = null;
    try {
      const db = this.#connected();
      state = this.#mark.written(db, () => {
        for (const row of request.records) writeRow(db, row, request.watched);
      });
      if (refusal !== null) return { ...refusal, isOlder: state.isOlder };
      let revision = this.#known;
      const reply = inTransaction(db, () => {
        const isKnown = revisionOf(db) === this.#known;
        const answer = this.#change(db, request, onRows);
        if (answer !== null || isKnown) revision = revisionOf(db);
        return answer;
      });
      if (request.tidy) this.#tidy(db, request.watched);
      // Not before: a reply that fails brings no content.
      this.#known = revision;
      this.#refusal = null;
      return { ...(reply ?? { kind: "done" as const }), ...state };
    } catch (error) {
      const reply = this.#failed(request, error);
      if (reply.kind === "failed")
        return (this.#refusal = { ...reply, hasRecords: state !== null, isOlder: state?.isOlder });
      const message = reply.kind === "fresh" ? (reply.moved ?? "") : "";
      this.#refusal = { kind: "failed", error: "corrupt", message };
      return reply;
    }
  }

  /** The file's content if another process wrote it, and `null` otherwise. */
  #change(db: Database, { changes, basis }: StateWrite, onRows: OnRows): StateReply | null {
    const isBased = basis === this.#basis;
    const revision = revisionOf(db);
    const isKnown = isBased && revision === this.#known;
    const hasChanges = changes.length > 0;
    if (isKnown || hasChanges) this.#isBehind = !isKnown;
    if (!hasChanges) return null;
    if (isKnown) {
      writeLedgerRows(db, changes);
      return null;
    }
    // The reply that brings the content is on its way, and the requester writes again what it lacks.
    if (!isBased && this.#basis !== null) return null;
    return revision === "" ? this.#fresh(null) : this.#tell(db, onRows);
  }

  /** If the trace cannot be written, the state file stays in use. */
  #trace(request: TraceRequest): StateReply {
    try {
      this.#tracer.write(this.#connected(), request);
      return { kind: "done", marks: [] };
    } catch (thrown) {
      const error = storeError(`${verbs.trace} ${this.#paths.database}`, thrown);
      return { kind: "failed", error: error.kind, message: error.message };
    }
  }

  /** The last process to close the file leaves a copy of its stamp beside it. */
  #close(): StateReply {
    const { writer } = this.#options;
    if (this.#isBehind || this.#refusal !== null)
      return { kind: "failed", error: "write", message: "not everything is written" };
    const db = this.#connected();
    const others = inTransaction(db, () => {
      if (writer !== undefined) dropMarks(db, [writer]);
      return marksIn(db).size;
    });
    this[Symbol.dispose]();
    if (others === 0) files.write(this.#paths.closed, closedStamp(this.#paths));
    return { kind: "done", marks: [] };
  }

  #fresh(moved: string | null): StateReply {
    this.#mark.forget();
    return { kind: "fresh", basis: crypto.randomUUID(), moved };
  }

  #tidy(db: Database, observed: string): void {
    prune(db, watched(BigInt(observed)));
    if ((files.sizeBytes(this.#paths.wal) ?? 0) < walBytesMax) return;
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    // The first write to an emptied log waits for the disk too: here, not in the next pass.
    writeSetting(db, "checkpointed-at", this.#options.now().toString());
  }

  /** The connection, reopened if it was dropped or the file was replaced. */
  #connected(): Database {
    if (this.#db !== null && files.identity(this.#paths.database) === this.#identity)
      return this.#db;
    const isFirst = this.#db === null;
    this[Symbol.dispose]();
    this.#wasClosed ??= isClosed(this.#paths);
    // Before anything else, because it needs no room on the disk.
    files.removeForGood(this.#paths.closed);
    this.#db = openForWriting(this.#paths, isFirst ? openBusyMs : busyMs);
    this.#db.run(`PRAGMA busy_timeout = ${busyMs}`);
    this.#identity = files.identity(this.#paths.database);
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
      return this.#fresh(`${message}; the file is now ${aside}`);
    } catch (thrown) {
      const error = storeError(`move ${this.#paths.database} aside`, thrown);
      // The next write brings its content again.
      this.#basis = null;
      this.#known = null;
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
