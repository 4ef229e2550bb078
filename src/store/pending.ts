// What waits to be written, when it may be, and how long crigc waits for it.

import type { HistoryRecord } from "./history.ts";

/** Maximum number of records kept while the disk refuses them; beyond it the oldest are dropped and counted. */
export const RECORDS_MAX = 20_000;
const BATCH_RECORDS = 2_000;

/** Records in the order in which they came. */
export class PendingRecords {
  #records: HistoryRecord[] = [];
  #dropped = 0;

  get count(): number {
    return this.#records.length;
  }

  add(records: readonly HistoryRecord[]): void {
    this.#records.push(...records);
    this.#dropOldest();
  }

  /** The oldest, for one write. */
  take(): readonly HistoryRecord[] {
    const batch = this.#records.slice(0, BATCH_RECORDS);
    this.#records = this.#records.slice(BATCH_RECORDS);
    return batch;
  }

  /** Those of writes that failed. */
  takeBack(records: readonly HistoryRecord[]): void {
    this.#records = [...records, ...this.#records];
    this.#dropOldest();
  }

  /** How many were dropped since the last call. */
  dropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Removals among these and the waiting records, each once. */
  removals(others: readonly HistoryRecord[]): number {
    const keys = [...others, ...this.#records].flatMap((it) =>
      it.kind === "removal" ? [`${it.row.passId} ${it.row.kind} ${it.row.subject}`] : [],
    );
    return new Set(keys).size;
  }

  #dropOldest(): void {
    const tooMany = this.#records.length - RECORDS_MAX;
    if (tooMany <= 0) return;
    this.#records = this.#records.slice(tooMany);
    this.#dropped += tooMany;
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
