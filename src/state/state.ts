/**
 * The ledger and the history of the process that holds the node: in memory at once, on the disk as soon as it takes them.
 * One write of each is under way at a time, and only an orderly end waits for it.
 */

import { rm } from "node:fs/promises";

import type { Ledger } from "../model/ledger.ts";
import type { LedgerMemory } from "../model/ports.ts";
import { adviceOn, reasonOf, writeWholeFile } from "../node/files.ts";
import { ledgerText, moveAside, type StateOptions, statePaths, writeLedger } from "./files.ts";
import { appendLines, type RecordKind, recordLine, syncHistory } from "./history-file.ts";
import { readState } from "./reader.ts";

/** Unwritten records that memory holds. */
const RECORDS_MAX = 20_000;
const RETRY_MS = 10_000;
const OPEN_MS = 2_000;
const PAUSE_MS = 250;
/** For a write under way: longer than that, its disk hangs. */
const HANG_MS = 60_000;

/** Nothing here throws or rejects. */
export class State implements LedgerMemory {
  readonly #options: StateOptions;
  #ledger: Ledger;
  /** Not in the history yet. */
  readonly #records: { readonly record: RecordKind; readonly row: unknown }[] = [];
  /** The last one in the history. */
  #lastRecord: number;
  /** Files that cannot be used and are not moved aside yet. */
  #unusable: readonly string[];
  #isLedgerDue = true;
  #isClosing = false;
  /** The writes of records. A killed process must lose no more than one, so they do not wait for a ledger. */
  #appending = Promise.resolve();
  /** The writes of ledgers. */
  #saving = Promise.resolve();
  /** While the last write failed. */
  #retry: ReturnType<typeof setInterval> | undefined;
  #failure: string | null = null;

  /** Reads the directory, moves aside what cannot be used, and begins to write that the ledger is open. */
  static async open(options: StateOptions): Promise<State> {
    const state = new State(options);
    // A process that is killed after its first removal must leave a ledger that is not closed.
    await Promise.race([state.#saving, Bun.sleep(OPEN_MS)]);
    return state;
  }

  private constructor(options: StateOptions) {
    const found = readState(options, true);
    this.#options = options;
    this.#ledger = found.ledger;
    this.#lastRecord = found.lastRecord;
    this.#unusable = found.faults.map(({ path }) => path);
    for (const { message } of found.faults) options.notify(message);
    if (found.brokenLines > 0)
      options.notify(
        `the history in ${options.directory} has lines that are cut off or broken (${found.brokenLines}); crigc skips them`,
      );
    this.#start();
  }

  current(): Ledger {
    return this.#ledger;
  }

  replace(ledger: Ledger): void {
    this.#ledger = ledger;
  }

  /** Has the ledger written, and the history synced before it. */
  save(): void {
    this.#isLedgerDue = true;
    this.#changed();
  }

  /** `row`: as its codec wrote it. */
  append(record: RecordKind, row: unknown): void {
    this.#records.push({ record, row });
    this.#changed();
  }

  /** Why the last write failed; `null`: it did not. */
  get failure(): string | null {
    return this.#failure;
  }

  /**
   * Tries to write all, again for `patienceMs` while removals are not recorded, and waits up to a minute for a write that
   * hangs. Returns the number of removals without a record.
   */
  async flush(patienceMs: number): Promise<number> {
    const endMs = performance.now() + patienceMs;
    for (;;) {
      this.#start();
      const written = Promise.all([this.#appending, this.#saving]);
      await Promise.race([written, Bun.sleep(HANG_MS)]);
      if (this.#unrecorded === 0 || performance.now() > endMs) return this.#unrecorded;
      await Bun.sleep(PAUSE_MS);
    }
  }

  /** The same for the last time: the ledger says that it is closed. What the disk does not take is in the run directory. */
  async close(patienceMs: number): Promise<number> {
    if (this.#isClosing) return this.#unrecorded;
    this.#isClosing = this.#isLedgerDue = true;
    const lost = await this.flush(patienceMs);
    clearInterval(this.#retry);
    if (lost > 0)
      this.#options.notify(
        `the history lacks the records of ${lost} removal${lost === 1 ? "" : "s"}`,
      );
    return lost;
  }

  get #unrecorded(): number {
    return this.#records.filter(({ record }) => record === "removal").length;
  }

  /** After a failure the next attempt waits. */
  #changed(): void {
    if (this.#failure === null) this.#start();
  }

  #start(): void {
    this.#appending = this.#appending.then(() => this.#writeRecords()).catch(this.#failed);
    if (!this.#isLedgerDue) return;
    this.#saving = this.#saving.then(() => this.#writeLedger()).catch(this.#failed);
  }

  async #writeRecords(): Promise<void> {
    this.#moveAside();
    const records = this.#records.slice();
    if (records.length === 0) return;
    const first = this.#lastRecord + 1;
    const lines = records.map(({ record, row }, index) => recordLine(first + index, record, row));
    await appendLines(this.#options, lines.join(""));
    this.#lastRecord += records.length;
    this.#records.splice(0, records.length);
  }

  async #writeLedger(): Promise<void> {
    this.#moveAside();
    if (!this.#isLedgerDue) return;
    this.#isLedgerDue = false;
    const { ledger, spareLedger } = statePaths(this.#options);
    await this.#appending;
    await syncHistory(this.#options);
    await writeLedger(ledger, this.#text());
    // The next process ignores a spare that is older than the ledger.
    await rm(spareLedger, { force: true }).catch(() => undefined);
    if (this.#failure === null || this.#records.length > 0) return;
    this.#failure = null;
    clearInterval(this.#retry);
    this.#retry = undefined;
    this.#options.notify(`the state directory ${this.#options.directory} is written again`);
  }

  #moveAside(): void {
    this.#unusable.forEach(moveAside);
    this.#unusable = [];
  }

  #text(): string {
    return ledgerText({
      ledger: this.#ledger,
      closed: this.#isClosing,
      lastRecord: this.#lastRecord,
      machineId: this.#options.machineId,
    });
  }

  readonly #failed = (thrown: unknown): void => {
    const { directory, notify } = this.#options;
    const isFirst = this.#failure === null;
    this.#failure = `cannot write to ${directory}: ${reasonOf(thrown)}${adviceOn(thrown)}`;
    // Only the ledger tells of removals without a record.
    this.#isLedgerDue = true;
    this.#saveSpare();
    this.#retry ??= setInterval(() => this.#start(), RETRY_MS).unref();
    if (isFirst) notify(`${this.#failure}; records stay in memory, and crigc tries again`);
    const lost = this.#records.splice(0, this.#records.length - RECORDS_MAX).length;
    if (lost > 0) notify(`more than ${RECORDS_MAX} records wait; the oldest ${lost} are lost`);
  };

  /** Otherwise the next process would not know what this one saw and removed. */
  #saveSpare(): void {
    try {
      writeWholeFile(statePaths(this.#options).spareLedger, this.#text(), 0o600);
    } catch {
      // If the run directory is full too, the last written ledger remains.
    }
  }
}
