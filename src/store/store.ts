// Ledger and records as `gc` and `run` know them: in memory at once, and on disk as soon as the disk takes them.

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { WriterPresence } from "../model/ports.ts";
import { type Answer, askLedger } from "./ask-ledger.ts";
import type { HistoryRecord } from "./history-records.ts";
import type { RecentHistory } from "./history.ts";
import { ledgerChanges } from "./ledger-rows.ts";
import { ALONE, leftOpen } from "./left-open.ts";
import { mergeLedgers } from "./merge.ts";
import { Failures, type StoreNotice } from "./notice.ts";
import { RecordSender } from "./record-sender.ts";
import type { StateChannel, StateRequest } from "./state-request.ts";
import { within } from "./within.ts";
import { WriteThrottle } from "./write-throttle.ts";

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
/** How long a pass waits for what others wrote. */
const REFRESH_MS = 500;
const CLOSE_MS = 2_000;
/** Maximum number of batches in one flush, and of responses meanwhile that change what has to be written. */
const MAX_TURNS = 100;

/** Only functions that return a promise wait, for a bounded time except `flush`; nothing throws or rejects. */
export abstract class Store {
  readonly #options: StoreOptions;
  readonly #presence: WriterPresence;
  readonly #throttle = new WriteThrottle(() => this.#writeNow());
  readonly #records: RecordSender;
  #ledger: Ledger = emptyLedger;
  /** What the file contained when it was last read or written. */
  #base: Ledger = emptyLedger;
  #wasLeftOpen = false;
  /** The file lacks what this process wrote. */
  #isOlder = false;
  /** Requests run in sequence. */
  #last: Promise<unknown> = Promise.resolve();
  /** The ledger of the write in flight. */
  #sent: Ledger | null = null;
  #isFlushing = false;
  #isHanging = false;
  #isClosed = false;
  readonly #failures: Failures;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#presence = options.presence ?? ALONE;
    this.#failures = new Failures(options.directory, options.notify);
    this.#records = new RecordSender({
      ask: async (request) => {
        const answer = await this.#ask(request);
        if (answer.kind === "fresh") this.#takeIn(answer, "crigc writes it again from memory");
        return answer.kind === "read" ? { kind: "fresh", moved: null } : answer;
      },
      ledger: () => this.#ledger,
      succeeded: (lost) => this.#written(lost),
      failed: (why) => this.#refused(why),
    });
  }

  /** Reads the file. Content that arrives too late is adopted when it arrives. */
  async open(): Promise<void> {
    await within(
      HANGING_MS + REFRESH_MS,
      this.#next(() => this.#begin("read")),
    );
    if (this.failure() === null)
      await within(
        REFRESH_MS,
        this.#next(() => this.#begin("open")),
      );
  }

  /** Receives the newest records whenever the file was read. */
  protected abstract known(recent: RecentHistory): void;

  /** The newest one that is known. */
  ledger(): Ledger {
    return this.#ledger;
  }

  saveLedger(ledger: Ledger): void {
    this.#ledger = ledger;
    this.#throttle.ask();
  }

  record(...records: readonly HistoryRecord[]): void {
    if (this.#isClosed) return;
    this.#records.add(...records);
    // At the end of the caller's own step: the next removal may be done before a timer fires.
    if (this.#throttle.isOpen) queueMicrotask(() => this.#records.send());
    this.#throttle.ask();
  }

  /** After a pass: the next write may also checkpoint and prune. */
  tidyNext(): void {
    this.#records.tidyNext();
    this.#throttle.ask();
  }

  /** With the pass lock: adopts what other processes wrote; one that died may have known more. */
  async refresh(): Promise<void> {
    // One question is enough for a disk that does not answer.
    if (!this.#isHanging && !this.#isClosed)
      await within(
        REFRESH_MS,
        this.#next(() => this.#refresh()),
      );
    // A process that died is known without the disk.
    if (this.#presence.others().isOneDead) this.#restartAge();
  }

  /** Writes everything pending, and resolves with whether it is on disk. Takes as long as the disk does. */
  flush(): Promise<boolean> {
    return this.#next(() => this.#flush());
  }

  /** Removals whose records the disk has not taken. */
  get removalsNotWritten(): number {
    return this.#records.removalsNotWritten;
  }

  /** The current failure, if any. */
  failure(): StoreErrorKind | null {
    return this.#failures.last;
  }

  async close(): Promise<void> {
    this.#throttle.stop();
    let isWritten = false;
    const flushing = this.flush().then((it) => (isWritten = it));
    const isAnswered = await within(CLOSE_MS, flushing);
    const last = isAnswered ? [] : this.#remainder();
    if (isAnswered && !isWritten) this.#failures.lost(this.#records.removalsNotWritten);
    this.#isClosed = true;
    let isComplete = false;
    if (isWritten)
      await within(
        CLOSE_MS,
        this.#ask({ kind: "close" }).then(({ kind }) => (isComplete = kind === "done")),
      );
    await within(CLOSE_MS, this.#options.channel.close(last));
    this.#presence.end(isComplete);
  }

  /** What no earlier request contains, for a disk that answers only after this process has ended. */
  #remainder(): readonly StateRequest[] {
    const changes = ledgerChanges(this.#ledger, this.#sent ?? this.#base);
    return [this.#records.next().request, { kind: "write", changes }, { kind: "close" }];
  }

  #next<Result>(step: () => Promise<Result>): Promise<Result> {
    const next = this.#last.then(step);
    this.#last = next;
    return next;
  }

  async #begin(kind: "read" | "open"): Promise<void> {
    const answer = await this.#ask({ kind });
    if (answer.kind !== "failed") return this.#takeIn(answer, "every image counts as new");
    const known =
      kind === "read" ? "earlier records are unavailable" : "crigc read the earlier records";
    const message = `${answer.message}; ${known}, and new ones stay in memory until they can be written`;
    this.#failures.failed("memory-only", { ...answer, message });
  }

  async #refresh(): Promise<void> {
    const before = this.#presence.others();
    const answer = await this.#ask({ kind: "refresh" });
    if (answer.kind !== "failed") this.#takeIn(answer, "crigc writes it again from memory");
    const marks = "marks" in answer ? answer.marks : [];
    const after = this.#presence.others();
    const { isLeftOpen, dead } = leftOpen({ marks, before, after, wasLeftOpen: this.#wasLeftOpen });
    if (dead.length > 0) void this.#ask({ kind: "drop-marks", ids: dead });
    if (isLeftOpen) this.#restartAge();
    this.#wasLeftOpen = false;
  }

  /** The ledger may miss that an image was removed and pulled again. */
  #restartAge(): void {
    const { observedAt, ageRestartDue } = this.#ledger;
    if (observedAt !== null && !ageRestartDue)
      this.saveLedger({ ...this.#ledger, ageRestartDue: true });
  }

  #writeNow(): void {
    if (this.#isClosed) return;
    this.#records.send();
    if (!this.#isFlushing) void this.#flushInTurn();
  }

  async #flushInTurn(): Promise<void> {
    this.#isFlushing = true;
    const isDone = await this.flush();
    this.#isFlushing = false;
    if (!isDone && !this.#isClosed) this.#throttle.ask();
  }

  async #flush(): Promise<boolean> {
    for (let turn = 0; turn < MAX_TURNS && !this.#isClosed; turn += 1) {
      this.#records.send();
      if (this.#ledger === this.#base && this.#records.isIdle) return true;
      const isWritten = this.#ledger === this.#base || (await this.#writeLedger());
      if (!(await this.#records.settled()) || !isWritten) return false;
    }
    return false;
  }

  async #writeLedger(): Promise<boolean> {
    const ledger = this.#ledger;
    const changes = ledgerChanges(ledger, this.#base);
    this.#sent = ledger;
    const answer = await this.#ask({ kind: "write", changes });
    this.#sent = null;
    if (answer.kind === "failed") {
      this.#refused(answer);
      return false;
    }
    if (answer.kind === "done") this.#base = ledger;
    this.#takeIn(answer, "crigc writes it again from memory");
    // Not at once: a disk that corrupts every file would fill up with them.
    if (answer.kind === "fresh" && answer.moved !== null) {
      this.#throttle.failed();
      return false;
    }
    this.#written(0);
    return true;
  }

  #written(lost: number): void {
    this.#throttle.succeeded();
    this.#failures.recovered(lost);
  }

  #refused({ error, message }: { readonly error: StoreErrorKind; readonly message: string }): void {
    this.#throttle.failed();
    const next = "unwritten records stay in memory and crigc tries again";
    this.#failures.failed("write-failed", { error, message: `${message}; ${next}` });
  }

  /** `then`: what happens next, if the file was broken. */
  #takeIn(answer: Exclude<Answer, { kind: "failed" }>, then: string): void {
    if (answer.kind === "fresh") {
      if (this.#base !== emptyLedger) this.#restartAge();
      this.#base = emptyLedger;
      const { moved } = answer;
      if (moved === null) return;
      const message = `${moved}, and ${then}`;
      this.#options.notify({ kind: "broken-moved-aside", error: "corrupt", message });
      return;
    }
    if (answer.kind === "done") {
      this.#isOlder = false;
      return;
    }
    const theirs = answer.ledger;
    if (answer.isClosed === false && theirs.observedAt !== null) this.#wasLeftOpen = true;
    // Memory replaces an earlier copy of the file.
    const isEarlier = this.#isOlder && this.#ledger.observedAt !== null;
    if (!isEarlier && this.#ledger === this.#base) this.#ledger = theirs;
    else if (!isEarlier)
      this.#ledger = mergeLedgers({ base: this.#base, ours: this.#ledger, theirs });
    this.#base = theirs;
    this.#isOlder = false;
    if (isEarlier) this.#throttle.ask();
    else this.known(answer.recent);
  }

  async #ask(request: StateRequest): Promise<Answer> {
    const { channel, directory } = this.#options;
    const hanging = setTimeout(() => {
      this.#isHanging = true;
      this.#failures.hangs();
    }, HANGING_MS);
    hanging.unref();
    try {
      const reply = await askLedger(channel, directory, request);
      if ("isOlder" in reply && reply.isOlder) {
        this.#isOlder = true;
        this.#restartAge();
      }
      return reply;
    } finally {
      clearTimeout(hanging);
      this.#isHanging = false;
    }
  }
}
