// What waits to be written, when it may be, and how long crigc waits for it.

import type { HistoryRecord } from "./history.ts";

/** Maximum number of records kept while the disk refuses them; beyond it the oldest are dropped and counted. */
export const RECORDS_MAX = 20_000;
const BATCH_RECORDS = 2_000;
/** Maximum number of unanswered writes; a pipe holds about as many. */
export const UNANSWERED_MAX = 64;

interface OutboxPorts {
  /** Resolves with whether they are written. */
  readonly write: (records: readonly HistoryRecord[]) => Promise<boolean>;
  /** Called after each write. */
  readonly answered: () => void;
  /** Called when what failed may be tried again. */
  readonly isDue: () => void;
}

/** Records in the order in which they came, sent without waiting for replies: what was sent outlives a killed process. */
export class RecordOutbox {
  readonly throttle: WriteThrottle;
  readonly #ports: OutboxPorts;
  /** The first `#sent` of them are sent and not answered. */
  readonly #records: HistoryRecord[] = [];
  #sent = 0;
  readonly #unanswered = new Set<Promise<boolean>>();
  /** A write failed; once those after it came back too, all are sent again. */
  #hasFailed = false;
  #dropped = 0;

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
    this.throttle = new WriteThrottle(ports.isDue);
  }

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  get unanswered(): readonly Promise<boolean>[] {
    return [...this.#unanswered];
  }

  add(records: readonly HistoryRecord[]): void {
    this.#records.push(...records);
    const tooMany = this.#records.length - RECORDS_MAX;
    if (tooMany > 0) this.#dropped += this.#records.splice(this.#sent, tooMany).length;
  }

  sendIfOpen(): void {
    if (this.throttle.isOpen) this.send();
    else if (!this.isEmpty) this.throttle.ask();
  }

  send(): void {
    while (
      this.#records.length > this.#sent &&
      !this.#hasFailed &&
      this.#unanswered.size < UNANSWERED_MAX
    ) {
      const batch = this.next();
      const answer = this.#ports.write(batch).then((isWritten) => {
        this.#unanswered.delete(answer);
        this.#answered(batch.length, isWritten);
        return isWritten;
      });
      this.#unanswered.add(answer);
    }
  }

  /** The oldest that are not sent, for one write. */
  next(): readonly HistoryRecord[] {
    const batch = this.#records.slice(this.#sent, this.#sent + BATCH_RECORDS);
    this.#sent += batch.length;
    return batch;
  }

  #answered(records: number, isWritten: boolean): void {
    this.#sent -= records;
    if (isWritten) {
      this.#records.splice(0, records);
      this.throttle.succeeded();
    } else if (!this.#hasFailed) {
      this.#hasFailed = true;
      this.throttle.failed();
    }
    if (this.#unanswered.size === 0) this.#hasFailed = false;
    if (this.#records.length > this.#sent) this.throttle.ask();
    this.#ports.answered();
  }

  /** How many were dropped since the last call. */
  dropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Removals whose records are not sent, or were refused, each once: it was recorded when it was done, and again with its pass. */
  get removals(): number {
    const keys = this.#records
      .slice(this.#hasFailed ? 0 : this.#sent)
      .flatMap((it) =>
        it.kind === "removal" ? [`${it.row.passId} ${it.row.kind} ${it.row.subject}`] : [],
      );
    return new Set(keys).size;
  }
}

const retryFirstMs = 1_000;
const retryMaxMs = 60_000;

/** Writes as soon as requested, and later after each failure. */
export class WriteThrottle {
  readonly #write: () => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #notBeforeMs = 0;
  #retryMs = retryFirstMs;

  constructor(write: () => void) {
    this.#write = write;
  }

  /** Requests a write; calls between now and then share it. Does not keep a process alive. */
  ask(): void {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#notBeforeMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#write();
    }, waitMs);
    this.#timer.unref();
  }

  /** Whether the last write did not fail. */
  get isOpen(): boolean {
    return performance.now() >= this.#notBeforeMs;
  }

  /** What waits for a retry is written at once. */
  succeeded(): void {
    const isRetry = !this.isOpen && this.#timer !== null;
    this.#retryMs = retryFirstMs;
    this.#notBeforeMs = 0;
    if (!isRetry) return;
    this.stop();
    this.ask();
  }

  failed(): void {
    this.#notBeforeMs = performance.now() + this.#retryMs;
    this.#retryMs = Math.min(this.#retryMs * 2, retryMaxMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Waits at most `ms` for the result; `null`: it takes longer, and the work continues. */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  const result = await Promise.race([work, patience]);
  clearTimeout(timer);
  return result;
}
