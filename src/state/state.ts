/**
 * The ledger and the history of the process that holds the node: in memory at once, on the disk as soon as it takes them.
 * One write of each file is under way at a time, and only an orderly end waits for it.
 */

import { rmSync } from "node:fs";

import type { StoreErrorKind } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Clocks } from "../model/snapshot.ts";
import type { ObservedTime } from "../model/time.ts";
import { writeWholeFile } from "../node/files.ts";
import { fileFault, moveAside, statePaths, type StatePlaces, storeError } from "./files.ts";
import { appendLines, syncHistory } from "./history-file.ts";
import { ledgerText, writeLedger } from "./ledger-file.ts";
import { type FoundState, readState } from "./read-state.ts";
import { type HistoryRecord, recordLine } from "./records.ts";

export interface StateOptions extends StatePlaces {
  readonly clocks: () => Clocks;
  /** Receives what an operator should hear of, once when it begins and once when it ends. */
  readonly notify: (message: string) => void;
}

interface Line {
  readonly text: string;
  readonly seq: number;
  readonly isRemoval: boolean;
}

/** Unwritten records that memory holds; beyond this the oldest are lost. */
const LINES_MAX = 20_000;
const LINES_AT_ONCE = 1_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_LAST_MS = 60_000;
const OPEN_MS = 2_000;
const SLOW_MS = 2_000;
const SETTLE_PAUSE_MS = 250;

/** Nothing here throws or rejects. */
export class State {
  readonly #options: StateOptions;
  readonly disksRecorded: ReadonlyMap<string, ObservedTime>;
  #ledger: Ledger;
  #lines: readonly Line[] = [];
  #lastRecord: number;
  #lastWritten: number;
  #isLedgerDue = true;
  #isSyncDue = false;
  #isEnding = false;
  #hasClosed = false;
  #appending: Promise<void> | null = null;
  #saving: Promise<void> | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #retryMs = RETRY_FIRST_MS;
  #failure: StoreErrorKind | null = null;
  /** Removals whose records were dropped since the last write. */
  #dropped = 0;

  /** Reads the directory, moves aside what cannot be used, and begins to write that the ledger is open. */
  static async open(options: StateOptions): Promise<State> {
    const found = readState(options, { clocks: options.clocks(), isOwner: true });
    const state = new State(options, found);
    state.#moveAside(found);
    state.#start();
    // A process that is killed after its first removal must leave a ledger that is not closed.
    await within(OPEN_MS, state.#saving);
    return state;
  }

  private constructor(options: StateOptions, found: FoundState) {
    this.#options = options;
    this.#ledger = found.ledger;
    this.#lastRecord = this.#lastWritten = found.lastRecord;
    this.disksRecorded = found.disksRecorded;
    if (found.brokenLines > 0)
      options.notify(
        `the history in ${options.directory} has lines that are cut off or broken (${found.brokenLines}); crigc skips them`,
      );
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  /** In memory: the next `save` writes it. */
  keep(ledger: Ledger): void {
    this.#ledger = ledger;
  }

  save(): void {
    this.#isLedgerDue = true;
    this.#start();
  }

  append(...records: readonly HistoryRecord[]): void {
    const lines = records.map((record): Line => {
      const seq = ++this.#lastRecord;
      const text = recordLine({ seq, watched: this.#ledger.watched }, record);
      return { text, seq, isRemoval: record.record === "removal" };
    });
    const all = [...this.#lines, ...lines];
    this.#lines = all.slice(-LINES_MAX);
    this.#dropped += removalsIn(all.slice(0, -LINES_MAX));
    this.#start();
  }

  /** After a pass: what it left goes to the disk itself. */
  sync(): void {
    this.#isSyncDue = true;
    this.save();
  }

  /** Why the last write failed; `null`: it did not. */
  get failure(): StoreErrorKind | null {
    return this.#failure;
  }

  /** Removals of which the history has no record. */
  get unrecorded(): number {
    return this.#dropped + removalsIn(this.#lines);
  }

  /**
   * Tries to write the records of removals until `patience` aborts, but only twice if the directory cannot be written at
   * all. Calls `waits` once if it takes longer. Returns how many the history lacks.
   */
  async settle(patience: AbortSignal, waits: () => void): Promise<number> {
    // A command that is stopped waits for what is under way, too.
    await this.#flush(AbortSignal.timeout(SLOW_MS));
    if (this.unrecorded > 0 && !patience.aborted) waits();
    while (this.unrecorded > 0 && !patience.aborted) {
      await Bun.sleep(SETTLE_PAUSE_MS);
      await this.#flush(patience);
      if (this.#failure === "write") break;
    }
    return this.unrecorded;
  }

  /** Writes everything and that the ledger is closed; what the disk does not take goes into the run directory. */
  async close(patience: AbortSignal): Promise<void> {
    this.#isEnding = this.#isSyncDue = this.#isLedgerDue = true;
    await this.#flush(patience);
    if (this.#isDue && !patience.aborted) await this.#flush(patience);
    this.#hasClosed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    if (!this.#isDue) return;
    const lost = this.unrecorded;
    if (lost > 0)
      this.#options.notify(
        `the history lacks the records of ${lost} removal${lost === 1 ? "" : "s"}`,
      );
    this.#saveSpare();
  }

  /** Tries once, also if the time for it has not come. */
  async #flush(patience: AbortSignal): Promise<void> {
    const aborted = new Promise((resolve) => patience.addEventListener("abort", resolve));
    this.#start(true);
    while (this.#isRunning && !patience.aborted)
      await Promise.race([Promise.all([this.#appending, this.#saving]), aborted]);
  }

  get #isRunning(): boolean {
    return this.#appending !== null || this.#saving !== null;
  }

  get #isHistoryDue(): boolean {
    return this.#lines.length > 0 || this.#isSyncDue;
  }

  get #isDue(): boolean {
    return this.#isRunning || this.#isHistoryDue || this.#isLedgerDue;
  }

  /** A removal is recorded at once, also while the ledger waits for the disk itself. */
  #start(isUrgent = false): void {
    if (this.#hasClosed || (this.#retry !== null && !isUrgent)) return;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    if (this.#appending === null && this.#isHistoryDue)
      this.#appending = this.#attempt(() => this.#writeHistory()).finally(() => {
        this.#appending = null;
        this.#settled();
      });
    // A ledger that is closed has the last record.
    const isAfterHistory = this.#isEnding && (this.#isHistoryDue || this.#appending !== null);
    if (this.#saving === null && this.#isLedgerDue && !isAfterHistory)
      this.#saving = this.#attempt(() => this.#writeLedger()).finally(() => {
        this.#saving = null;
        this.#settled();
      });
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  #settled(): void {
    this.#start();
    if (!this.#isDue) this.#recovered();
  }

  async #writeHistory(): Promise<void> {
    const path = statePaths(this.#options).history;
    const lines = this.#lines.slice(0, LINES_AT_ONCE);
    if (lines.length > 0) {
      this.#free(path);
      await appendLines(this.#options, lines.map(({ text }) => text).join(""));
      const written = new Set(lines);
      this.#lines = this.#lines.filter((line) => !written.has(line));
      this.#lastWritten = lines.at(-1)?.seq ?? this.#lastWritten;
      return;
    }
    this.#isSyncDue = false;
    await syncHistory(this.#options).catch((thrown: unknown) => {
      this.#isSyncDue = true;
      throw thrown;
    });
  }

  async #writeLedger(): Promise<void> {
    const { ledger, spareLedger } = statePaths(this.#options);
    this.#isLedgerDue = false;
    const text = this.#text(this.#isEnding);
    try {
      this.#free(ledger);
      await writeLedger(this.#options, text);
    } catch (thrown) {
      this.#isLedgerDue = true;
      throw thrown;
    }
    try {
      rmSync(spareLedger, { force: true });
    } catch {
      // It is older now, so the next process does not read it.
    }
  }

  #text(closed: boolean): string {
    const { machineId } = this.#options;
    return ledgerText({ ledger: this.#ledger, closed, lastRecord: this.#lastWritten, machineId });
  }

  /** For the next process, which else would know nothing of what this one saw and removed. */
  #saveSpare(): void {
    try {
      writeWholeFile(statePaths(this.#options).spareLedger, this.#text(this.#hasClosed));
    } catch {
      // A run directory that is full too leaves what the ledger says.
    }
  }

  /** Moves aside what is in the place of a file. Throws `StoreError`. */
  #free(path: string): void {
    let why: string | null;
    try {
      why = fileFault(path, this.#options);
    } catch (thrown) {
      throw storeError(`write ${path}`, thrown);
    }
    if (why !== null)
      this.#options.notify(`cannot use ${path}: ${why}; it is now ${moveAside(path, why)}`);
  }

  #moveAside({ faults, ledger }: FoundState): void {
    const { ledger: ledgerPath } = statePaths(this.#options);
    for (const { path, why } of faults) {
      const isNew = path === ledgerPath && ledger.observedAt === null;
      const next = isNew ? "; every image counts as new" : "";
      try {
        this.#options.notify(
          `cannot use ${path}: ${why}; it is now ${moveAside(path, why)}${next}`,
        );
      } catch (thrown) {
        this.#failed(thrown);
      }
    }
  }

  #failed(thrown: unknown): void {
    const error = storeError(`write to ${this.#options.directory}`, thrown);
    if (this.#failure === null)
      this.#options.notify(`${error.message}; records stay in memory, and crigc tries again`);
    this.#failure = error.kind;
    if (this.#hasClosed) return;
    this.#saveSpare();
    this.#retry = setTimeout(() => this.#start(true), this.#retryMs);
    this.#retry.unref();
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_LAST_MS);
  }

  #recovered(): void {
    this.#retryMs = RETRY_FIRST_MS;
    if (this.#failure === null) return;
    this.#failure = null;
    const lost = this.#dropped === 0 ? "" : `, without the records of ${this.#dropped} removals`;
    this.#dropped = 0;
    this.#options.notify(`the state directory ${this.#options.directory} is written again${lost}`);
  }
}

const removalsIn = (lines: readonly Line[]): number =>
  lines.filter(({ isRemoval }) => isRemoval).length;

/** Waits for the work, but no longer. */
async function within(ms: number, work: Promise<unknown> | null): Promise<void> {
  const over = new AbortController();
  const late = new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    over.signal.addEventListener("abort", () => clearTimeout(timer));
  });
  await Promise.race([work, late]);
  over.abort();
}
