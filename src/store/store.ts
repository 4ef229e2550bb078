// Ledger and records as `gc` and `run` know them: in memory at once, and on disk as soon as the disk takes them.

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { WriterPresence } from "../model/ports.ts";
import { Failures, type StoreNotice } from "./errors.ts";
import type { HistoryRecord } from "./history.ts";
import { historyRow, type RecentHistory } from "./history.ts";
import { ledgerChanges } from "./ledger-rows.ts";
import { ALONE, leftOpen } from "./marks.ts";
import { mergeLedgers } from "./merge.ts";
import { PendingRecords, within, WriteThrottle } from "./pending.ts";
import {
  askLedger,
  type LedgerAnswer,
  type StateChannel,
  type StateRequest,
  type StateWrite,
} from "./state-request.ts";

export interface StoreOptions {
  readonly channel: StateChannel;
  /** Absent: no other process writes. */
  readonly presence?: WriterPresence | undefined;
  /** `--state-dir`, for messages. */
  readonly directory: string;
  /** Receives everything that the operator should hear of, at once and once. */
  readonly notify: (notice: StoreNotice) => void;
}

/** A disk that takes longer counts as hanging, and crigc stops waiting. */
const HANGING_MS = 2_000;
const REFRESH_MS = 500;
/** Maximum number of unanswered writes; a pipe holds about as many. */
const UNANSWERED_MAX = 64;
const FLUSH_ROUNDS_MAX = 100;
const WRITTEN_AGAIN = "crigc writes it again from memory";

/** Records and the ledger as of one moment, written together. */
interface Batch {
  readonly request: StateWrite;
  readonly records: readonly HistoryRecord[];
  /** `null`: records alone, because the disk did not take the ledger. */
  readonly ledger: Ledger | null;
}

/** Only functions that return a promise wait, for a bounded time except `flush`; nothing throws or rejects. */
export abstract class Store {
  readonly #options: StoreOptions;
  readonly #presence: WriterPresence;
  readonly #failures: Failures;
  readonly #throttle = new WriteThrottle(() => this.#send());
  #ledger: Ledger = emptyLedger;
  /** As of the last write that was sent. */
  #sent: Ledger = emptyLedger;
  /** The file's content when last read or written. */
  #written: Ledger = emptyLedger;
  /** The reply that brought the file's content; writes name it, because another may be on its way. */
  #basis: string | null = null;
  readonly #records = new PendingRecords();
  #isTidyDue = false;
  /** Writes are sent without waiting: what was sent outlives a killed process. */
  readonly #unanswered = new Map<Batch, Promise<boolean>>();
  /** Failed writes while others are unanswered, in order. */
  #refused: Batch[] = [];
  #wasLeftOpen = false;
  /** The file lacks what this process wrote. */
  #isOlder = false;
  /** The last write failed, but for its records. */
  #takesRecords = false;
  #isHanging = false;
  #isClosed = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#presence = options.presence ?? ALONE;
    this.#failures = new Failures(options.directory, options.notify);
  }

  /** Reads the file. Content that arrives too late is adopted when it arrives. */
  async open(): Promise<void> {
    await within(HANGING_MS + REFRESH_MS, this.#begin({ kind: "read" }));
    if (this.failure() === null) await within(REFRESH_MS, this.#begin({ kind: "open", dead: [] }));
  }

  /** Receives the newest records whenever the file was read. */
  protected abstract known(recent: RecentHistory): void;

  ledger(): Ledger {
    return this.#ledger;
  }

  saveLedger(ledger: Ledger): void {
    this.#ledger = ledger;
    this.#throttle.ask();
  }

  record(...records: readonly HistoryRecord[]): void {
    if (this.#isClosed) return;
    this.#records.add(records);
    // At the end of the caller's own step: the next removal may be done before a timer fires.
    const { isOpen } = this.#throttle;
    if (isOpen || this.#takesRecords) queueMicrotask(() => this.#send(isOpen));
    this.#throttle.ask();
  }

  /** After a pass: the next write may also checkpoint and prune. */
  tidyNext(): void {
    this.#isTidyDue = true;
    this.#throttle.ask();
  }

  /** With the pass lock: adopts what other processes wrote; one that died may have known more. */
  async refresh(): Promise<void> {
    if (!this.#isHanging && !this.#isClosed) await within(REFRESH_MS, this.#refresh());
    // A process that died is known without the disk.
    if (this.#presence.others().isOneDead) this.#restartAge();
  }

  /** Writes everything pending, also what comes meanwhile, and resolves with whether it is on disk. Takes as long as the disk does. */
  async flush(): Promise<boolean> {
    for (let round = 0; round < FLUSH_ROUNDS_MAX && !this.#isClosed; round += 1) {
      this.#send();
      if (this.#unanswered.size === 0) return !this.#isDue;
      const written = await Promise.all(this.#unanswered.values());
      if (written.includes(false)) return false;
    }
    return false;
  }

  /**
   * Removals whose records are not sent, or were refused: what was sent is written once a hanging disk responds. Each was
   * recorded when it was done, and again with its pass.
   */
  get removalsNotWritten(): number {
    return this.#records.removals(this.#refused.flatMap(({ records }) => records));
  }

  failure(): StoreErrorKind | null {
    return this.#failures.last;
  }

  async close(): Promise<void> {
    this.#throttle.stop();
    const isWritten = await within(HANGING_MS, this.flush());
    // For a disk that answers only after this process has ended.
    const last: readonly StateRequest[] =
      isWritten === null ? [this.#nextBatch().request, { kind: "close" }] : [];
    if (isWritten === false) this.#failures.lost(this.removalsNotWritten);
    this.#isClosed = true;
    const closed =
      isWritten === true ? await within(HANGING_MS, this.ask({ kind: "close" })) : null;
    await within(HANGING_MS, this.#options.channel.close(last));
    this.#presence.end(closed?.kind === "done");
  }

  async #begin(request: StateRequest): Promise<void> {
    const answer = await this.ask(request);
    if (answer.kind !== "failed") return this.#adopt(answer, "every image counts as new");
    const known =
      request.kind === "read"
        ? "earlier records are unavailable"
        : "crigc read the earlier records";
    const message = `${answer.message}; ${known}, and new ones stay in memory until they can be written`;
    this.#failures.failed("memory-only", { ...answer, message });
  }

  async #refresh(): Promise<void> {
    const before = this.#presence.others();
    const answer = await this.ask({ kind: "refresh" });
    if (answer.kind !== "failed") this.#adopt(answer, WRITTEN_AGAIN);
    const marks = "marks" in answer ? answer.marks : [];
    const after = this.#presence.others();
    const { isLeftOpen, dead } = leftOpen({ marks, before, after, wasLeftOpen: this.#wasLeftOpen });
    if (dead.length > 0) void this.ask({ kind: "open", dead });
    if (isLeftOpen) this.#restartAge();
    this.#wasLeftOpen = false;
  }

  /** The ledger may miss that an image was removed and pulled again. */
  #restartAge(): void {
    const ledger = this.#ledger;
    if (ledger.observedAt !== null && !ledger.ageRestartDue)
      this.saveLedger({ ...ledger, ageRestartDue: true });
  }

  get #isDue(): boolean {
    return this.#records.count > 0 || this.#isTidyDue || this.#ledger !== this.#sent;
  }

  #send(withLedger = true): void {
    if (this.#isClosed) return;
    const isDue = () => (withLedger ? this.#isDue : this.#records.count > 0);
    while (isDue() && this.#refused.length === 0 && this.#unanswered.size < UNANSWERED_MAX) {
      const batch = this.#nextBatch(withLedger);
      this.#unanswered.set(batch, this.#write(batch));
    }
  }

  #nextBatch(withLedger = true): Batch {
    const records = this.#records.take();
    const ledger = withLedger ? this.#ledger : null;
    const request: StateWrite = {
      kind: "write",
      isFirst: this.#unanswered.size === 0,
      basis: this.#basis,
      records: records.map(historyRow),
      changes: ledgerChanges(ledger ?? this.#sent, this.#sent),
      watched: this.#ledger.watched.toString(),
      tidy: withLedger && this.#isTidyDue,
    };
    if (ledger !== null) {
      this.#sent = ledger;
      this.#isTidyDue = false;
    }
    return { request, records, ledger };
  }

  async #write(batch: Batch): Promise<boolean> {
    const answer = await this.ask(batch.request);
    // Otherwise the state process ended between an earlier batch and this one.
    const isNext = this.#refused.length === 0 && this.#unanswered.keys().next().value === batch;
    this.#unanswered.delete(batch);
    const { basis, tidy, changes } = batch.request;
    if (answer.kind === "read" || answer.kind === "fresh") this.#adopt(answer, WRITTEN_AGAIN);
    // Of an earlier basis only the records were written, and they alone also to an earlier copy.
    else if (answer.kind === "done" && isNext && basis === this.#basis && batch.ledger !== null) {
      this.#written = batch.ledger;
      if (changes.length > 0) this.#isOlder = false;
    }
    const isWritten = answer.kind === "fresh" ? answer.moved === null : answer.kind !== "failed";
    if (!isWritten) {
      this.#takesRecords = answer.kind === "failed" && answer.hasRecords === true;
      if (this.#refused.length === 0) this.#failed(answer);
      this.#refused.push(this.#takesRecords ? { ...batch, records: [] } : batch);
      this.#isTidyDue ||= tidy;
    } else if (batch.ledger !== null) {
      this.#throttle.succeeded();
      this.#failures.recovered(this.#records.dropped());
    }
    // Once those sent after a failed write came back too, all are sent again.
    if (this.#unanswered.size === 0 && this.#refused.length > 0) {
      this.#records.takeBack(this.#refused.flatMap(({ records }) => records));
      this.#refused = [];
      this.#sent = this.#written;
    }
    if (this.#isDue && !this.#isClosed) this.#throttle.ask();
    return isWritten;
  }

  /** Not again at once, also after a broken file: a disk that corrupts every file would fill up. */
  #failed(answer: LedgerAnswer): void {
    this.#throttle.failed();
    if (answer.kind !== "failed") return;
    const message = `${answer.message}; unwritten records stay in memory and crigc tries again`;
    this.#failures.failed("write-failed", { ...answer, message });
  }

  /** `then`: what follows if the file was broken. */
  #adopt(answer: Exclude<LedgerAnswer, { kind: "failed" }>, then: string): void {
    if (answer.kind === "done") return void (this.#isOlder = false);
    this.#basis = answer.basis;
    if (answer.kind === "fresh") {
      if (this.#written !== emptyLedger) this.#restartAge();
      this.#written = this.#sent = emptyLedger;
      if (answer.moved === null) return;
      const message = `${answer.moved}, and ${then}`;
      this.#options.notify({ kind: "broken-moved-aside", error: "corrupt", message });
      return;
    }
    const theirs = answer.ledger;
    if (answer.isClosed === false && theirs.observedAt !== null) this.#wasLeftOpen = true;
    // Memory replaces an earlier copy of the file.
    const isEarlier = this.#isOlder && this.#ledger.observedAt !== null;
    const diverged = { base: this.#written, ours: this.#ledger, theirs };
    if (!isEarlier)
      this.#ledger = diverged.ours === diverged.base ? theirs : mergeLedgers(diverged);
    this.#written = this.#sent = theirs;
    this.#isOlder = false;
    if (this.#isDue) this.#throttle.ask();
    if (!isEarlier) this.known(answer.recent);
  }

  protected async ask(request: StateRequest): Promise<LedgerAnswer> {
    const { channel, directory } = this.#options;
    const hanging = setTimeout(() => {
      this.#isHanging = true;
      this.#failures.hangs();
    }, HANGING_MS);
    hanging.unref();
    const answer = await askLedger(channel, directory, request);
    clearTimeout(hanging);
    this.#isHanging = false;
    if ("isOlder" in answer && answer.isOlder) {
      this.#isOlder = true;
      this.#restartAge();
    }
    return answer;
  }
}
