// Ledger and records as `gc` and `run` know them: in memory at once, and on disk as soon as the disk takes them.

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { WriterPresence } from "../model/ports.ts";
import { Failures, type StoreNotice } from "./errors.ts";
import { type HistoryRecord, historyRow, type RecentHistory } from "./history.ts";
import { ledgerChanges } from "./ledger-rows.ts";
import { ALONE, leftOpen } from "./marks.ts";
import { mergeLedgers } from "./merge.ts";
import { RecordOutbox, UNANSWERED_MAX, within, WriteThrottle } from "./pending.ts";
import {
  askLedger,
  type FileContent,
  type LedgerAnswer,
  type LedgerWrite,
  type RecordsWrite,
  type StateChannel,
  type StateRequest,
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
const FLUSH_ROUNDS_MAX = 100;

/** Only functions that return a promise wait, for a bounded time except `flush`; nothing throws or rejects. */
export abstract class Store {
  readonly #options: StoreOptions;
  readonly #presence: WriterPresence;
  readonly #failures: Failures;
  readonly #throttle = new WriteThrottle(() => this.#send());
  readonly #records = new RecordOutbox({
    write: (records) => this.#writeRecords(records),
    answered: () => this.#answered(),
    isDue: () => this.#send(),
  });
  #ledger: Ledger = emptyLedger;
  /** When last read or written. */
  #written: FileContent = { ledger: emptyLedger, revision: null };
  /** With the writes that are not answered yet. */
  #sent = this.#written;
  /** In order, without waiting for replies: what was sent outlives a killed process. */
  readonly #writing = new Set<Promise<boolean>>();
  #isTidyDue = false;
  #wasLeftOpen = false;
  /** The file lacks what this process wrote. */
  #isOlder = false;
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
    queueMicrotask(() => this.#send());
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
      this.#sendLedger();
      this.#records.send();
      const unanswered = [...this.#writing, ...this.#records.unanswered];
      if (unanswered.length === 0) return !this.#isDue;
      const written = await Promise.all(unanswered);
      if (written.includes(false)) return false;
    }
    return false;
  }

  /** Removals that may never be on disk: what was sent is written once a hanging disk responds. */
  get removalsNotWritten(): number {
    return this.#records.removals;
  }

  failure(): StoreErrorKind | null {
    return this.#failures.last;
  }

  async close(): Promise<void> {
    this.#throttle.stop();
    this.#records.throttle.stop();
    const isWritten = await within(HANGING_MS, this.flush());
    // For a disk that answers only after this process has ended.
    const last: readonly StateRequest[] =
      isWritten === null
        ? [this.#recordsRequest(this.#records.next()), this.#ledgerRequest(), { kind: "close" }]
        : [];
    if (isWritten === false) this.#failures.lost(this.removalsNotWritten);
    this.#isClosed = true;
    const closed =
      isWritten === true ? await within(HANGING_MS, this.ask({ kind: "close" })) : null;
    await within(HANGING_MS, this.#options.channel.close(last));
    this.#presence.end(closed?.kind === "done");
  }

  async #begin(request: StateRequest): Promise<void> {
    const answer = await this.ask(request);
    if (answer.kind !== "failed") return this.#adopt(answer);
    const known =
      request.kind === "read"
        ? "earlier records are unavailable"
        : "crigc read the earlier records";
    const message = `${answer.message}; ${known}, and new ones stay in memory until they can be written`;
    this.#failures.failed("memory-only", { ...answer, message });
  }

  async #refresh(): Promise<void> {
    const before = this.#presence.others();
    await Promise.all(this.#writing);
    const answer = await this.ask({ kind: "refresh", revision: this.#written.revision });
    if (answer.kind !== "failed") this.#adopt(answer);
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

  get #isLedgerDue(): boolean {
    return this.#isTidyDue || this.#ledger !== this.#sent.ledger;
  }

  get #isDue(): boolean {
    return this.#isLedgerDue || this.#writing.size > 0 || !this.#records.isEmpty;
  }

  /** The ledger first: a record of a removal then finds no record of its image. */
  #send(): void {
    if (this.#isClosed) return;
    if (this.#throttle.isOpen) this.#sendLedger();
    else if (this.#isLedgerDue) this.#throttle.ask();
    this.#records.sendIfOpen();
  }

  #sendLedger(): void {
    if (this.#writing.size >= UNANSWERED_MAX || !this.#isLedgerDue) return;
    const writing = this.#writeLedger(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  #ledgerRequest(): LedgerWrite {
    const { ledger, revision: from } = this.#sent;
    const changes = ledgerChanges(this.#ledger, ledger);
    const to = crypto.randomUUID();
    const [tidy, watched] = [this.#isTidyDue, this.#ledger.watched.toString()];
    this.#sent = { ledger: this.#ledger, revision: changes.length === 0 ? from : to };
    this.#isTidyDue = false;
    return { kind: "ledger", from, to, changes, tidy, watched };
  }

  async #writeLedger(answered: () => void): Promise<boolean> {
    const request = this.#ledgerRequest();
    const sent = this.#sent;
    const answer = await this.ask(request);
    answered();
    if (answer.kind === "read" || answer.kind === "fresh") this.#adopt(answer);
    else if (answer.kind === "done" && request.from === this.#written.revision)
      this.#written = sent;
    // Once those after a failed write came back too, its changes are due again.
    if (this.#writing.size === 0) this.#sent = this.#written;
    if (answer.kind === "done" && request.changes.length > 0) this.#isOlder = false;
    this.#failed(answer);
    // A file that was broken counts as a failure: a disk that corrupts every file would fill up.
    const isWritten = answer.kind === "fresh" ? answer.moved === null : answer.kind !== "failed";
    if (isWritten) this.#throttle.succeeded();
    else this.#throttle.failed();
    this.#isTidyDue ||= request.tidy && !isWritten;
    this.#answered();
    return isWritten;
  }

  #recordsRequest(records: readonly HistoryRecord[]): RecordsWrite {
    return {
      kind: "records",
      isFirst: this.#records.unanswered.length === 0,
      records: records.map(historyRow),
      watched: this.#ledger.watched.toString(),
    };
  }

  async #writeRecords(records: readonly HistoryRecord[]): Promise<boolean> {
    const request = this.#recordsRequest(records);
    const answer = await this.ask(request);
    if (answer.kind === "fresh") this.#adopt(answer);
    // The others are refused for the failure of the first, which is sent again before them.
    if (request.isFirst) this.#failed(answer);
    return answer.kind === "done";
  }

  #answered(): void {
    if (!this.#isDue) this.#failures.recovered(this.#records.dropped());
    else if (this.#isLedgerDue && !this.#isClosed) this.#throttle.ask();
  }

  #failed(answer: LedgerAnswer): void {
    if (answer.kind !== "failed") return;
    const message = `${answer.message}; unwritten records stay in memory and crigc tries again`;
    this.#failures.failed("write-failed", { ...answer, message });
  }

  #adopt(answer: Exclude<LedgerAnswer, { kind: "failed" }>): void {
    if (answer.kind === "done") return void (this.#isOlder = false);
    if (answer.kind === "fresh") {
      if (this.#written.ledger !== emptyLedger) this.#restartAge();
      this.#written = this.#sent = { ledger: emptyLedger, revision: "" };
      if (answer.moved === null) return;
      const isNew = this.#ledger.observedAt === null;
      const next = isNew ? "every image counts as new" : "crigc writes it again from memory";
      const message = `${answer.moved}, and ${next}`;
      this.#options.notify({ kind: "broken-moved-aside", error: "corrupt", message });
      return;
    }
    const theirs = answer.ledger;
    if (answer.isClosed === false && theirs.observedAt !== null) this.#wasLeftOpen = true;
    const ours = this.#ledger;
    // Memory replaces an earlier copy of the file, which knows no later time; another file is mounted late.
    const isEarlier = this.#isOlder && ours.observedAt !== null && theirs.watched <= ours.watched;
    const base = this.#isOlder ? emptyLedger : this.#written.ledger;
    if (!isEarlier) this.#ledger = mergeLedgers({ base, ours, theirs });
    this.#written = this.#sent = { ledger: theirs, revision: answer.revision };
    this.#isOlder = false;
    if (this.#isLedgerDue) this.#throttle.ask();
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
