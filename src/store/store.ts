// Ledger and records as `gc` and `run` know them: in memory at once, and on disk as soon as the disk takes them.

import type { StoreErrorKind } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { WriterPresence } from "../model/ports.ts";
import { Failures, type Notify } from "./errors.ts";
import { type HistoryRecord, type HistoryRow, historyRow } from "./history.ts";
import { isOtherFile, ledgerChanges, nextRevision } from "./ledger-rows.ts";
import { mergeLedgers } from "./merge.ts";
import { Outbox, RecordQueue, within } from "./pending.ts";
import {
  askLedger,
  type FileContent,
  type LedgerAnswer,
  type LedgerWrite,
  type StateChannel,
  type StateRequest,
} from "./state-request.ts";

export interface StoreOptions {
  readonly channel: StateChannel;
  /** Absent: no other process writes. */
  readonly presence?: WriterPresence | undefined;
  /** `--state-dir`, for messages. */
  readonly directory: string;
  readonly notify: Notify;
}

/** A disk that takes longer counts as hanging, and crigc stops waiting. */
const HANGING_MS = 2_000;
const REFRESH_MS = 500;
const FLUSH_ROUNDS_MAX = 100;

/** Only functions that return a promise wait, for a bounded time except `flush`; nothing throws or rejects. */
export abstract class Store {
  readonly #options: StoreOptions;
  readonly #failures: Failures;
  #ledger: Ledger = emptyLedger;
  /** When last read or written. */
  #written: FileContent = { ledger: emptyLedger, revision: null };
  /** With the writes that are not answered yet. */
  #sent = this.#written;
  /** The only images whose records differ from those sent; `null`: any may. */
  #changed: ReadonlySet<ImageId> | null = null;
  #isTidyDue = false;
  readonly #ledgers = new Outbox<LedgerWrite>({
    take: () => (this.#isClosed || !this.#isLedgerDue ? null : this.#ledgerRequest()),
    write: (request) => this.#writeLedger(request, this.#sent),
    settled: () => this.#ledgersSettled(),
  });
  readonly #records = new RecordQueue();
  readonly #histories = new Outbox<readonly HistoryRow[]>({
    take: () => (this.#isClosed ? null : this.#records.next()),
    write: (records, isFirst) => this.#writeRecords(records, isFirst),
    settled: () => {
      this.#records.again();
      this.#noteRecovery();
    },
  });
  /** The ledger may miss changes, of a process that died or left the file open: to be told to the next if no pass runs. */
  #wasLeftOpen = false;
  /** What comes late comes in the middle of a pass. */
  #mayPassRun = false;
  #isHanging = false;
  #isClosed = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#failures = new Failures(options.directory, options.notify, options.presence);
  }

  /** Reads the file. Content that arrives too late is adopted when it arrives. */
  async open(): Promise<void> {
    const read = this.#begin({ kind: "read" }, "earlier records are unavailable");
    await within(HANGING_MS + REFRESH_MS, read);
    if (this.failure() !== null) return;
    const refresh = { kind: "refresh", revision: this.#written.revision } as const;
    await within(REFRESH_MS, this.#begin(refresh, "crigc read the earlier records"));
  }

  /** Receives `recentHistory` as JSON whenever the file was read, and after a pass. */
  protected abstract known(recent: string): void;

  ledger(): Ledger {
    return this.#ledger;
  }

  /** `changed`: the only images whose records differ; absent: any may. */
  saveLedger(ledger: Ledger, changed?: readonly ImageId[]): void {
    if (ledger.images !== this.#ledger.images)
      this.#changed =
        changed === undefined ? null : (this.#changed?.union(new Set(changed)) ?? null);
    this.#ledger = ledger;
    this.#sendSoon();
  }

  record(...records: readonly HistoryRecord[]): void {
    if (this.#isClosed) return;
    this.#records.add(records.map((record) => historyRow(record, this.#ledger.watched)));
    this.#sendSoon();
  }

  /** After a pass: the next write may also checkpoint and prune. */
  tidyNext(): void {
    this.#isTidyDue = true;
    this.#sendSoon();
  }

  /** With the pass lock: adopts what other processes wrote; one that died may have known more. */
  async refresh(): Promise<void> {
    this.#mayPassRun = true;
    if (!this.#isHanging && !this.#isClosed) await within(REFRESH_MS, this.#refresh());
    // A process that died or cannot write is known without the disk.
    this.#isOneAlive();
    if (this.#wasLeftOpen) this.#restartAge();
  }

  /** Writes everything pending, also what comes meanwhile, and resolves with whether it is on disk. Takes as long as the disk does. */
  async flush(): Promise<boolean> {
    for (let round = 0; round < FLUSH_ROUNDS_MAX && !this.#isClosed; round += 1) {
      this.#send(true);
      const unanswered = [...this.#ledgers.unanswered, ...this.#histories.unanswered];
      if (unanswered.length === 0) return !this.#isDue;
      const written = await Promise.all(unanswered);
      if (written.includes(false)) return false;
    }
    return false;
  }

  /** Removals that may never be on disk: what was sent is written once a hanging disk responds. */
  get removalsNotWritten(): number {
    const waiting = this.#histories.hasFailed ? this.#records.all : this.#records.unsent;
    return new Set(waiting.flatMap(({ kind, key }) => (kind === "removal" ? [key] : []))).size;
  }

  failure(): StoreErrorKind | null {
    return this.#failures.last;
  }

  async close(): Promise<void> {
    const isWritten = await within(HANGING_MS, this.flush());
    const close = { kind: "close", isLast: !this.#isOneAlive() && !this.#wasLeftOpen } as const;
    const records = { kind: "records", isFirst: false, records: this.#records.unsent } as const;
    // For a disk that answers only after this process has ended.
    const last = isWritten === null ? [records, this.#ledgerRequest(), close] : [];
    if (isWritten === false) this.#failures.lost(this.removalsNotWritten);
    this.#isClosed = true;
    this.#ledgers.stop();
    this.#histories.stop();
    const closed = isWritten === true ? await within(HANGING_MS, this.ask(close)) : null;
    await within(HANGING_MS, this.#options.channel.close(last));
    this.#options.presence?.end(closed?.kind === "done" && !this.#wasLeftOpen);
  }

  /** `known`: what is known if it fails. */
  async #begin(request: StateRequest, known: string): Promise<void> {
    const wasOneAlive = this.#isOneAlive();
    const answer = await this.ask(request);
    if (answer.kind !== "failed") return this.#adopt(answer, wasOneAlive);
    const message = `${answer.message}; ${known}, and new ones stay in memory until they can be written`;
    this.#failures.failed(answer.error, message);
  }

  async #refresh(): Promise<void> {
    await Promise.all(this.#ledgers.unanswered);
    const answer = await this.ask({ kind: "refresh", revision: this.#written.revision });
    if (answer.kind !== "failed") this.#adopt(answer);
  }

  /** Notes one that died, of which only the first call tells, or cannot write. */
  #isOneAlive(): boolean {
    const others = this.#options.presence?.others();
    this.#wasLeftOpen ||= others?.isOneBehind === true;
    return others?.isOneAlive === true;
  }

  /** The ledger may miss that an image was removed and pulled again. */
  #restartAge(): void {
    const ledger = this.#ledger;
    if (ledger.observedAt === null) return;
    this.#wasLeftOpen = false;
    if (!ledger.ageRestartDue) this.saveLedger({ ...ledger, ageRestartDue: true });
  }

  get #isLedgerDue(): boolean {
    return this.#isTidyDue || this.#ledger !== this.#sent.ledger;
  }

  get #isDue(): boolean {
    return this.#isLedgerDue || this.#ledgers.unanswered.length > 0 || this.#records.all.length > 0;
  }

  /** At the end of the caller's own step: the next removal may be done before a timer fires. */
  #sendSoon(): void {
    queueMicrotask(() => this.#send());
  }

  /** The ledger first: a record of a removal then finds no record of its image. */
  #send(isUrgent = false): void {
    if (this.#isClosed) return;
    this.#ledgers.send(isUrgent);
    this.#histories.send(isUrgent);
  }

  #ledgerRequest(): LedgerWrite {
    const { ledger, revision: from } = this.#sent;
    const changes = ledgerChanges(this.#ledger, ledger, this.#changed);
    const to = nextRevision(from);
    const tidy = this.#isTidyDue;
    this.#sent = { ledger: this.#ledger, revision: changes.length === 0 ? from : to };
    this.#changed = new Set();
    this.#isTidyDue = false;
    return { kind: "ledger", from, to, changes, tidy };
  }

  async #writeLedger(request: LedgerWrite, sent: FileContent): Promise<boolean> {
    const answer = await this.ask(request);
    if (answer.kind === "done" && request.from === this.#written.revision) this.#written = sent;
    if (answer.kind !== "failed") this.#adopt(answer);
    this.#failed(answer);
    // A file that was broken counts as a failure: a disk that corrupts every file would fill up.
    const isWritten = answer.kind === "fresh" ? answer.moved === null : answer.kind !== "failed";
    this.#isTidyDue ||= request.tidy && !isWritten;
    return isWritten;
  }

  #ledgersSettled(): void {
    if (this.#sent !== this.#written) this.#changed = null;
    this.#sent = this.#written;
    this.#noteRecovery();
  }

  async #writeRecords(records: readonly HistoryRow[], isFirst: boolean): Promise<boolean> {
    const answer = await this.ask({ kind: "records", isFirst, records });
    if (answer.kind === "fresh") this.#adopt(answer);
    // The others are refused for the failure of the first, which is sent again before them.
    if (isFirst) this.#failed(answer);
    if (answer.kind !== "done") return false;
    this.#records.written(records.length);
    return true;
  }

  #noteRecovery(): void {
    if (!this.#isDue) this.#failures.recovered(this.#records.dropped());
  }

  #failed(answer: LedgerAnswer): void {
    if (answer.kind !== "failed") return;
    const message = `${answer.message}; unwritten records stay in memory and crigc tries again`;
    this.#failures.failed(answer.error, message);
  }

  #adopt(answer: Exclude<LedgerAnswer, { kind: "failed" }>, wasOneAlive = false): void {
    if (answer.kind === "done") {
      if (answer.recent !== undefined) this.known(answer.recent);
      return;
    }
    this.#changed = null;
    if (answer.kind === "fresh") {
      if (this.#written.ledger !== emptyLedger) this.#restartAge();
      this.#written = this.#sent = { ledger: emptyLedger, revision: "" };
      if (answer.moved === null) return;
      const isNew = this.#ledger.observedAt === null;
      const next = isNew ? "every image counts as new" : "crigc writes it again from memory";
      this.#options.notify(`${answer.moved}, and ${next}`);
      return;
    }
    const { ledger: theirs, revision, recent } = answer;
    const isFirst = this.#written.revision === null && theirs.observedAt !== null;
    // A process that runs has opened the file, and will close it.
    this.#wasLeftOpen ||= isFirst && !answer.isClosed && !wasOneAlive && !this.#isOneAlive();
    const isOther = isOtherFile(revision, this.#written.revision);
    if (isOther) this.#restartAge();
    const ours = this.#ledger;
    // Memory replaces an earlier copy of the file, which knows no later time; another file is mounted late.
    const isEarlier = isOther && ours.observedAt !== null && theirs.watched <= ours.watched;
    const base = isOther ? emptyLedger : this.#written.ledger;
    this.#written = this.#sent = { ledger: theirs, revision };
    if (!isEarlier) {
      this.#ledger = mergeLedgers({ base, ours, theirs });
      this.known(recent);
    }
    if (this.#wasLeftOpen && this.#mayPassRun) this.#restartAge();
    this.#sendSoon();
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
    return answer;
  }
}
