// Ledger and records as `gc` and `run` know them: in memory at once, and on disk as soon as the disk takes them.

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import { storeError } from "./errors.ts";
import type { StateChannel, StateReply, StateRequest } from "./file/state-request.ts";
import { within } from "./file/within.ts";
import type { HistoryRecord } from "./history/history-records.ts";
import type { RecentHistory } from "./history/history.ts";
import { RecordSender } from "./history/record-sender.ts";
import { ledgerChanges, LedgerReading } from "./ledger/ledger.ts";
import { mergeLedgers } from "./ledger/merge.ts";
import { Failures, type StoreNotice } from "./notice.ts";
import { WriteThrottle } from "./write-throttle.ts";

export interface StoreOptions {
  readonly channel: StateChannel;
  /** `--state-dir`, for messages. */
  readonly directory: string;
  /** Receives everything that the operator should hear of, at once and once. */
  readonly notify: (notice: StoreNotice) => void;
}

/** A disk that takes longer counts as hanging, and crigc stops waiting. */
const HANGING_MS = 2_000;
/** How long a pass waits for what another process wrote. */
const REFRESH_MS = 500;
const CLOSE_MS = 2_000;
/** Maximum number of batches in one flush, and of responses meanwhile that change what has to be written. */
const MAX_TURNS = 100;

type Answer =
  | Exclude<StateReply, { kind: "read" }>
  | (Extract<StateReply, { kind: "read" }> & { readonly ledger: Ledger });

/** Only functions that return a promise wait, for a bounded time except `flush`; nothing throws or rejects. */
export abstract class Store {
  readonly #options: StoreOptions;
  readonly #throttle = new WriteThrottle(() => this.#writeNow());
  readonly #records: RecordSender;
  #ledger: Ledger = emptyLedger;
  /** What the file contains at `#revision`. */
  #base: Ledger = emptyLedger;
  #revision = "";
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
      this.#next(() => this.#read()),
    );
    if (this.failure() === null)
      await within(
        REFRESH_MS,
        this.#next(() => this.#makeReady()),
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

  /** Adopts what another process wrote. */
  async refresh(): Promise<void> {
    // One question is enough for a disk that does not answer.
    if (this.#isHanging || this.#isClosed) return;
    await within(
      REFRESH_MS,
      this.#next(() => this.#refresh()),
    );
  }

  /** Writes everything pending, and resolves with whether it is on disk. Takes as long as the disk does. */
  flush(): Promise<boolean> {
    return this.#next(() => this.#flush());
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
    if (isAnswered && !isWritten) this.#failures.lost(this.#records.waitingRemovals);
    this.#isClosed = true;
    await within(CLOSE_MS, this.#options.channel.close(last));
  }

  /** What no earlier request contains, for a disk that answers only after this process has ended. */
  #remainder(): readonly StateRequest[] {
    const changes = ledgerChanges(this.#ledger, this.#sent ?? this.#base);
    return [this.#records.next().request, { kind: "write", known: null, changes }];
  }

  #next<Result>(step: () => Promise<Result>): Promise<Result> {
    const next = this.#last.then(step);
    this.#last = next;
    return next;
  }

  async #read(): Promise<void> {
    const answer = await this.#ask({ kind: "read" });
    if (answer.kind === "failed") {
      const next =
        "earlier records are unavailable, and new ones stay in memory until they can be written";
      this.#failures.failed("memory-only", { ...answer, message: `${answer.message}; ${next}` });
    } else this.#takeIn(answer, "every image counts as new");
  }

  async #makeReady(): Promise<void> {
    const answer = await this.#ask({ kind: "open" });
    if (answer.kind === "failed")
      this.#failures.failed("memory-only", {
        ...answer,
        message: `${answer.message}; crigc read the earlier records, and new ones stay in memory until they can be written`,
      });
    else this.#takeIn(answer, "every image counts as new");
  }

  async #refresh(): Promise<void> {
    const answer = await this.#ask({ kind: "refresh", known: this.#revision });
    if (answer.kind !== "failed") this.#takeIn(answer, "crigc writes it again from memory");
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
    const answer = await this.#ask({ kind: "write", known: this.#revision, changes });
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
      this.#base = emptyLedger;
      this.#revision = "";
      const { moved } = answer;
      if (moved === null) return;
      const message = `${moved}, and ${then}`;
      this.#options.notify({ kind: "broken-moved-aside", error: "corrupt", message });
      return;
    }
    this.#revision = answer.revision;
    if (answer.kind === "done") return;
    const theirs = answer.ledger;
    this.#ledger =
      this.#ledger === this.#base
        ? theirs
        : mergeLedgers({ base: this.#base, ours: this.#ledger, theirs });
    this.#base = theirs;
    this.known(answer.recent);
  }

  async #ask(request: StateRequest): Promise<Answer> {
    const { channel, directory } = this.#options;
    const reading = new LedgerReading();
    let wrong: unknown = null;
    const hanging = setTimeout(() => {
      this.#isHanging = true;
      this.#failures.hangs();
    }, HANGING_MS);
    hanging.unref();
    try {
      const reply = await channel.ask(request, (rows) => {
        try {
          if (wrong === null) reading.add(rows);
        } catch (error) {
          wrong = error;
        }
      });
      if (wrong !== null) {
        const { message } = storeError(`read the ledger in ${directory}`, wrong);
        const aside = await channel.ask({ kind: "put-aside", message }, () => undefined);
        if (aside.kind !== "read") return aside;
      }
      return reply.kind === "read" ? { ...reply, ledger: reading.ledger() } : reply;
    } catch (error) {
      const { kind, message } = storeError(`access the ledger in ${directory}`, error);
      return { kind: "failed", error: kind, message };
    } finally {
      clearTimeout(hanging);
      this.#isHanging = false;
    }
  }
}
