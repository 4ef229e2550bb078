// Keeps ledger and history on disk without ever delaying or failing its caller: what the disk refuses stays in memory.

import type { Database } from "bun:sqlite";

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Instant } from "../model/time.ts";
import { moveAside } from "./broken.ts";
import { dataVersion, openForWriting, type StatePaths } from "./connection.ts";
import { storeError } from "./errors.ts";
import type { HistoryRecord } from "./history-records.ts";
import { historyRow, prune, writeRow } from "./history.ts";
import { ledgerChanges, ledgerOf } from "./ledger.ts";
import type { StoreNotice } from "./notice.ts";
import type { StateFiles } from "./ports.ts";
import { type Batch, Queue } from "./queue.ts";
import { Slot } from "./slot.ts";
import { readLedgerRows, readSetting, writeLedgerRows, writeSetting } from "./state-rows.ts";

export interface DiskStoreInput {
  readonly paths: StatePaths;
  readonly files: StateFiles;
  readonly now: () => Instant;
  readonly notify: (notice: StoreNotice) => void;
  /** Open, or `null` where the disk could not be had. */
  readonly db: Database | null;
  readonly ledger: Ledger;
  /** False where the file belongs to a later version: then the disk is left alone for good. */
  readonly mayWrite: boolean;
  /** What was already said of the disk. */
  readonly failure: StoreErrorKind | null;
}

const busyMs = 250;
/** The log of what was written is folded into the file beyond this size. */
const walBytesMax = 4 * 1024 * 1024;

export class DiskStore {
  readonly #input: DiskStoreInput;
  readonly #queue = new Queue();
  readonly #slot = new Slot(() => this.#flushSlot());
  #db: Database | null;
  #identity: string | null = null;
  #ledger: Ledger;
  /** Whether `#ledger` is newer than what the tables hold. */
  #isDirty = false;
  /** What the tables held when `#version` was read. */
  #written: Ledger = emptyLedger;
  #version = -1;
  #isTidyDue = false;
  #failure: StoreErrorKind | null;

  constructor(input: DiskStoreInput) {
    this.#input = input;
    this.#db = input.db;
    this.#ledger = input.ledger;
    this.#failure = input.failure;
    if (input.db !== null) this.#adopt(input.db, input.ledger);
  }

  ledger(): Ledger {
    if (!this.#isDirty && this.#db !== null) this.#takeIn(this.#db);
    return this.#ledger;
  }

  saveLedger(ledger: Ledger): void {
    this.#ledger = ledger;
    this.#isDirty = true;
    this.#slot.ask();
  }

  record(...records: readonly HistoryRecord[]): void {
    if (!this.#input.mayWrite) return;
    this.#queue.add(...records);
    this.#slot.ask();
  }

  setting(key: string): string | null {
    const waiting = this.#queue.setting(key);
    if (waiting !== null || this.#db === null) return waiting;
    try {
      return readSetting(this.#db, key);
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  setSetting(key: string, value: string): void {
    this.#queue.set(key, value);
    this.#slot.ask();
  }

  /** A pass is over: the next slot may also fold and prune. */
  tidyNext(): void {
    this.#isTidyDue = true;
    this.#slot.ask();
  }

  /** Writes all that waits, now; says whether it is on disk. */
  flush(): boolean {
    // Each turn writes one batch of a bounded queue.
    for (let turn = 0; turn < 100; turn += 1) {
      if (!this.#isDirty && this.#queue.isEmpty) return true;
      if (!this.#writeBatch()) return false;
    }
    return false;
  }

  /** The last refusal, while it lasts. */
  failure(): StoreErrorKind | null {
    return this.#failure;
  }

  close(): void {
    this.#slot.stop();
    this.flush();
    this.#drop();
  }

  #flushSlot(): void {
    const isDone = this.flush();
    if (!isDone && this.#input.mayWrite) this.#slot.ask();
    else if (this.#isTidyDue) this.#tidy();
  }

  #writeBatch(): boolean {
    const startedMs = performance.now();
    try {
      const db = this.#connected();
      if (db === null) return false;
      const batch = this.#queue.batch();
      this.#write(db, batch);
      this.#queue.written(batch);
      this.#slot.succeeded(performance.now() - startedMs);
      this.#recovered();
      return true;
    } catch (error) {
      return this.#failed(error);
    }
  }

  #write(db: Database, batch: Batch): void {
    db.run("BEGIN IMMEDIATE");
    try {
      if (this.#isDirty) {
        const version = dataVersion(db);
        // Another process wrote since: what differs is found against what it left.
        const previous = version === this.#version ? this.#written : ledgerOf(readLedgerRows(db));
        writeLedgerRows(db, ledgerChanges(this.#ledger, previous));
      }
      for (const [key, value] of batch.settings) writeSetting(db, key, value);
      for (const record of batch.records)
        writeRow(db, historyRow(record), this.#ledger.watched.toString());
      db.run("COMMIT");
    } catch (error) {
      if (db.inTransaction) db.run("ROLLBACK");
      throw error;
    }
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#written = this.#ledger;
    this.#version = dataVersion(db);
  }

  /** The connection, made anew where it was dropped or where the file was taken away from under it. */
  #connected(): Database | null {
    const { paths, files, mayWrite } = this.#input;
    if (this.#db !== null && files.identity(paths.database) === this.#identity) return this.#db;
    this.#drop();
    if (!mayWrite) return null;
    const db = openForWriting(paths, files, busyMs);
    try {
      this.#adopt(db, ledgerOf(readLedgerRows(db)));
    } catch (error) {
      db.close();
      throw error;
    }
    if (!this.#isDirty && this.#written !== emptyLedger) this.#ledger = this.#written;
    this.#isDirty ||= this.#ledger !== this.#written;
    return db;
  }

  #adopt(db: Database, written: Ledger): void {
    db.run(`PRAGMA busy_timeout = ${busyMs}`);
    this.#db = db;
    this.#identity = this.#input.files.identity(this.#input.paths.database);
    this.#written = written;
    this.#version = dataVersion(db);
  }

  #takeIn(db: Database): void {
    try {
      const version = dataVersion(db);
      if (version === this.#version) return;
      const ledger = ledgerOf(readLedgerRows(db));
      this.#written = ledger;
      this.#ledger = ledger;
      this.#version = version;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Always false, for the caller to return. */
  #failed(thrown: unknown): false {
    const { paths, files, now, notify } = this.#input;
    const error = storeError(`writing ${paths.database}`, thrown);
    this.#slot.failed();
    if (error.kind !== "busy" && error.kind !== "full") this.#drop();
    if (error.kind === "corrupt") {
      try {
        const aside = moveAside(paths, files, now());
        // The ledger is whole in memory and is written anew; the history begins afresh.
        this.#isDirty = true;
        const message = `${error.message}; the file is now ${aside}, and what is in memory is written anew`;
        notify({ kind: "broken-moved-aside", error: "corrupt", message });
        this.#slot.ask();
        return false;
      } catch {
        // It cannot be moved either: then the disk refuses, as below.
      }
    }
    if (this.#failure !== error.kind)
      notify({
        kind: "write-failed",
        error: error.kind,
        message: `${error.message}; what cannot be written is kept in memory and tried again`,
      });
    this.#failure = error.kind;
    return false;
  }

  #recovered(): void {
    const { notify, paths } = this.#input;
    const lost = this.#queue.takeLost();
    if (this.#failure !== null)
      notify({
        kind: "write-recovered",
        error: null,
        message: `writing ${paths.database} works again, and what was kept in memory is on disk`,
      });
    this.#failure = null;
    if (lost > 0)
      notify({
        kind: "records-lost",
        error: null,
        message: `${lost} records of the history were lost while ${paths.database} could not be written`,
      });
  }

  /** After a pass: no removal waits for what this waits for. */
  #tidy(): void {
    const { paths, files, now } = this.#input;
    this.#isTidyDue = false;
    if (this.#db === null) return;
    try {
      prune(this.#db, this.#ledger.watched);
      if ((files.sizeBytes(paths.wal) ?? 0) < walBytesMax) return;
      this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      // The first write to an emptied log waits for the disk too: here, and not in the next pass.
      writeSetting(this.#db, "checkpointed-at", now().toString());
    } catch (error) {
      this.#failed(error);
    }
  }

  #drop(): void {
    try {
      this.#db?.close();
    } catch {
      // Its file is gone or broken, and nothing of ours is in it that is not in memory.
    }
    this.#db = null;
  }
}
