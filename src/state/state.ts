/**
 * The ledger and the history of the process that holds the node: in memory at once, on the disk as soon as it takes them.
 * One write is under way at a time, and only an orderly end waits for it.
 */

import { rmSync } from "node:fs";

import type { StoreErrorKind } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import { writeWholeFile } from "../node/files.ts";
import {
  ledgerText,
  moveAside,
  statePaths,
  type StatePlaces,
  storeError,
  writeLedger,
} from "./files.ts";
import { appendLines, type HistoryRecord, recordLine, syncHistory } from "./history-file.ts";
import { type FoundState, readState } from "./reader.ts";

export interface StateOptions extends StatePlaces {
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
const RETRY_MS = 10_000;
const OPEN_MS = 2_000;
const SLOW_MS = 2_000;
const SETTLE_PAUSE_MS = 250;

/** Nothing here throws or rejects. */
export class State {
  readonly #options: StateOptions;
  #ledger: Ledger;
  #lines: readonly Line[] = [];
  #lastRecord: number;
  #lastWritten: number;
  #isLedgerDue = true;
  #isSyncDue = false;
  #isEnding = false;
  #hasClosed = false;
  #writing: Promise<void> | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #failure: StoreErrorKind | null = null;
  /** Removals whose records were lost. */
  #dropped = 0;

  /** Reads the directory, moves aside what cannot be used, and begins to write that the ledger is open. */
  static async open(options: StateOptions): Promise<State> {
    const state = new State(options, readState(options, true));
    state.#start(true);
    // A process that is killed after its first removal must leave a ledger that is not closed.
    await Promise.race([state.#writing, Bun.sleep(OPEN_MS)]);
    return state;
  }

  private constructor(options: StateOptions, found: FoundState) {
    this.#options = options;
    this.#ledger = found.ledger;
    this.#lastRecord = this.#lastWritten = found.lastRecord;
    if (found.brokenLines > 0)
      options.notify(
        `the history in ${options.directory} has lines that are cut off or broken (${found.brokenLines}); crigc skips them`,
      );
    for (const fault of found.faults) {
      const isLost = fault.path === statePaths(options).ledger && found.ledger.observedAt === null;
      const next = isLost ? "; every image counts as new" : "";
      try {
        const aside = moveAside(fault);
        options.notify(`cannot use ${fault.path}: ${fault.why}; it is now ${aside}${next}`);
      } catch (thrown) {
        this.#failed(thrown);
      }
    }
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

  append(record: HistoryRecord): void {
    const seq = ++this.#lastRecord;
    const isRemoval = record.record === "removal";
    const all = [...this.#lines, { text: recordLine(seq, record), seq, isRemoval }];
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
    if (this.#isDue) await this.#flush(patience);
    this.#hasClosed = true;
    clearTimeout(this.#retry ?? undefined);
    if (this.#isLedgerDue || this.#writing !== null) this.#saveSpare();
    const lost = this.unrecorded;
    if (lost > 0)
      this.#options.notify(
        `the history lacks the records of ${lost} removal${lost === 1 ? "" : "s"}`,
      );
  }

  /** Tries once, also if the time for it has not come. */
  async #flush(patience: AbortSignal): Promise<void> {
    const aborted = new Promise((resolve) => patience.addEventListener("abort", resolve));
    this.#start(true);
    while (this.#writing !== null && !patience.aborted)
      await Promise.race([this.#writing, aborted]);
  }

  get #isDue(): boolean {
    return this.#lines.length > 0 || this.#isSyncDue || this.#isLedgerDue;
  }

  #start(isUrgent = false): void {
    const isWaiting = this.#retry !== null && !isUrgent;
    if (this.#hasClosed || this.#writing !== null || isWaiting || !this.#isDue) return;
    clearTimeout(this.#retry ?? undefined);
    this.#retry = null;
    this.#writing = this.#write().finally(() => {
      this.#writing = null;
      this.#start();
    });
  }

  async #write(): Promise<void> {
    while (this.#isDue) {
      const history = await failureOf(this.#writeHistory());
      // Only the ledger tells the next process of removals without a record.
      this.#isLedgerDue ||= history !== null;
      const ledger = await failureOf(this.#writeLedger());
      const failed = history ?? ledger;
      if (failed !== null) return this.#failed(failed);
    }
    if (this.#failure === null) return;
    this.#failure = null;
    const lost = this.#dropped === 0 ? "" : `, without the records of ${this.#dropped} removals`;
    this.#dropped = 0;
    this.#options.notify(`the state directory ${this.#options.directory} is written again${lost}`);
  }

  async #writeHistory(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.slice(0, LINES_AT_ONCE);
      await appendLines(this.#options, lines.map(({ text }) => text).join(""));
      this.#lastWritten = lines.at(-1)?.seq ?? this.#lastWritten;
      this.#lines = this.#lines.filter(({ seq }) => seq > this.#lastWritten);
    }
    if (this.#isSyncDue) await syncHistory(this.#options);
    this.#isSyncDue = false;
  }

  async #writeLedger(): Promise<void> {
    if (!this.#isLedgerDue) return;
    this.#isLedgerDue = false;
    try {
      await writeLedger(this.#options, this.#text());
    } catch (thrown) {
      this.#isLedgerDue = true;
      this.#saveSpare();
      throw thrown;
    }
    try {
      rmSync(statePaths(this.#options).spareLedger, { force: true });
    } catch {
      // The next process ignores a spare that is older than the ledger.
    }
  }

  #text(): string {
    return ledgerText({
      ledger: this.#ledger,
      closed: this.#isEnding,
      lastRecord: this.#lastWritten,
      machineId: this.#options.machineId,
    });
  }

  /** Otherwise the next process would not know what this one saw and removed. */
  #saveSpare(): void {
    try {
      writeWholeFile(statePaths(this.#options).spareLedger, this.#text());
    } catch {
      // If the run directory is full too, the last written ledger remains.
    }
  }

  #failed(thrown: unknown): void {
    const error = storeError(`write to ${this.#options.directory}`, thrown);
    if (this.#failure === null)
      this.#options.notify(`${error.message}; records stay in memory, and crigc tries again`);
    this.#failure = error.kind;
    if (this.#hasClosed) return;
    this.#retry = setTimeout(() => this.#start(true), RETRY_MS);
    this.#retry.unref();
  }
}

const removalsIn = (lines: readonly Line[]): number =>
  lines.filter(({ isRemoval }) => isRemoval).length;

/** What was thrown; `null`: nothing. */
const failureOf = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
