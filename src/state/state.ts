/**
 * The ledger and the history of the process that holds the node: in memory at once, on the disk as soon as it takes them.
 * One write is under way at a time, and only an orderly end waits for it.
 */

import { rm } from "node:fs/promises";

import type { Ledger } from "../model/ledger.ts";
import type { LedgerMemory } from "../model/ports.ts";
import { adviceOn, reasonOf, writeWholeFile } from "../node/files.ts";
import { ledgerText, moveAside, type StateOptions, statePaths, writeLedger } from "./files.ts";
import { appendLines, type RecordKind, recordLine } from "./history-file.ts";
import { readState } from "./reader.ts";

/** Unwritten records that memory holds. */
const RECORDS_MAX = 20_000;
const RETRY_MS = 10_000;
const OPEN_MS = 2_000;
const PAUSE_MS = 250;

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
  #writing: Promise<void> | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #failure: string | null = null;

  /** Reads the directory, moves aside what cannot be used, and begins to write that the ledger is open. */
  static async open(options: StateOptions): Promise<State> {
    const state = new State(options);
    // A process that is killed after its first removal must leave a ledger that is not closed.
    await Promise.race([state.#writing, Bun.sleep(OPEN_MS)]);
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

  /** Tries to write all, and for `patienceMs` while records of removals wait. Returns how many the history lacks. */
  async flush(patienceMs: number): Promise<number> {
    const endMs = performance.now() + patienceMs;
    for (;;) {
      this.#start();
      await Promise.race([this.#writing, Bun.sleep(endMs - performance.now())]);
      if (this.#unrecorded === 0 || performance.now() > endMs) return this.#unrecorded;
      await Bun.sleep(PAUSE_MS);
    }
  }

  /** The same for the last time: the ledger says that it is closed. What the disk does not take is in the run directory. */
  async close(patienceMs: number): Promise<number> {
    if (this.#isClosing) return this.#unrecorded;
    this.#isClosing = this.#isLedgerDue = true;
    const lost = await this.flush(patienceMs);
    clearTimeout(this.#retry);
    if (this.#writing !== null) this.#saveSpare();
    if (lost > 0)
      this.#options.notify(
        `the history lacks the records of ${lost} removal${lost === 1 ? "" : "s"}`,
      );
    return lost;
  }

  get #unrecorded(): number {
    return this.#records.filter(({ record }) => record === "removal").length;
  }

  get #isDue(): boolean {
    return this.#records.length > 0 || this.#isLedgerDue;
  }

  /** After a failure the next attempt waits. */
  #changed(): void {
    if (this.#failure === null) this.#start();
  }

  #start(): void {
    if (this.#writing !== null || !this.#isDue) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = null;
      this.#changed();
    });
  }

  async #write(): Promise<void> {
    try {
      this.#unusable.forEach(moveAside);
      this.#unusable = [];
      while (this.#isDue) await this.#writeDue();
    } catch (thrown) {
      return this.#failed(thrown);
    }
    if (this.#failure === null) return;
    this.#failure = null;
    this.#options.notify(`the state directory ${this.#options.directory} is written again`);
  }

  async #writeDue(): Promise<void> {
    const isLedgerDue = this.#isLedgerDue;
    this.#isLedgerDue = false;
    try {
      await this.#writeRecords(isLedgerDue);
    } finally {
      // Only the ledger tells of removals without a record.
      if (isLedgerDue) await this.#writeLedger();
    }
  }

  async #writeRecords(isSynced: boolean): Promise<void> {
    const records = this.#records.slice();
    const first = this.#lastRecord + 1;
    const lines = records.map(({ record, row }, index) => recordLine(first + index, record, row));
    await appendLines(this.#options, lines.join(""), isSynced);
    this.#lastRecord += records.length;
    this.#records.splice(0, records.length);
  }

  async #writeLedger(): Promise<void> {
    const { ledger, spareLedger } = statePaths(this.#options);
    await writeLedger(ledger, this.#text());
    // The next process ignores a spare that is older than the ledger.
    await rm(spareLedger, { force: true }).catch(() => undefined);
  }

  #text(): string {
    return ledgerText({
      ledger: this.#ledger,
      closed: this.#isClosing,
      lastRecord: this.#lastRecord,
      machineId: this.#options.machineId,
    });
  }

  #failed(thrown: unknown): void {
    const { directory, notify } = this.#options;
    const isFirst = this.#failure === null;
    this.#failure = `cannot write to ${directory}: ${reasonOf(thrown)}${adviceOn(thrown)}`;
    this.#isLedgerDue = true;
    this.#saveSpare();
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#start(), RETRY_MS);
    this.#retry.unref();
    if (isFirst) notify(`${this.#failure}; records stay in memory, and crigc tries again`);
    const lost = this.#records.splice(0, this.#records.length - RECORDS_MAX).length;
    if (lost > 0) notify(`more than ${RECORDS_MAX} records wait; the oldest ${lost} are lost`);
  }

  /** Otherwise the next process would not know what this one saw and removed. */
  #saveSpare(): void {
    try {
      writeWholeFile(statePaths(this.#options).spareLedger, this.#text(), 0o600);
    } catch {
      // If the run directory is full too, the last written ledger remains.
    }
  }
}
