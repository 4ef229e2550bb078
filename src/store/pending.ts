// What waits for the disk, and how long crigc waits for it.

import type { HistoryRow } from "./history.ts";

/** Maximum number of unanswered writes; a pipe holds about as many. */
const UNANSWERED_MAX = 64;
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 60_000;

interface OutboxPorts<Batch> {
  /** Takes what is to be sent next; `null`: nothing waits. */
  readonly take: () => Batch | null;
  /** Resolves with whether it is written. `isFirst`: nothing before it is unanswered. */
  readonly write: (batch: Batch, isFirst: boolean) => Promise<boolean>;
  /** Called when all are answered: what is not written waits again. */
  readonly settled: () => void;
}

/** Sends in order, without waiting for replies: what was sent outlives a killed process. */
export class Outbox<Batch> {
  readonly #ports: OutboxPorts<Batch>;
  readonly #unanswered = new Set<Promise<boolean>>();
  #hasFailed = false;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #retryMs = RETRY_FIRST_MS;

  constructor(ports: OutboxPorts<Batch>) {
    this.#ports = ports;
  }

  get unanswered(): readonly Promise<boolean>[] {
    return [...this.#unanswered];
  }

  /** One came back unwritten, and those after it are still to come back. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** After a failure it is sent later, unless that is urgent. */
  send(isUrgent = false): void {
    if (this.#retry !== null && !isUrgent) return;
    while (!this.#hasFailed && this.#unanswered.size < UNANSWERED_MAX) {
      const batch = this.#ports.take();
      if (batch === null) return;
      const answer = this.#ports.write(batch, this.#unanswered.size === 0).then((isWritten) => {
        this.#unanswered.delete(answer);
        this.#answered(isWritten);
        return isWritten;
      });
      this.#unanswered.add(answer);
    }
  }

  #answered(isWritten: boolean): void {
    this.#hasFailed ||= !isWritten;
    if (isWritten) this.stop();
    if (this.#unanswered.size === 0) {
      if (this.#hasFailed) this.#sendLater();
      this.#hasFailed = false;
      this.#ports.settled();
    }
    this.send();
  }

  #sendLater(): void {
    if (this.#retry !== null) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.send();
    }, this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
  }

  /** Waits for no retry any more. */
  stop(): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#retryMs = RETRY_FIRST_MS;
  }
}

/** Maximum number of records kept while the disk refuses them; beyond it the oldest are dropped and counted. */
export const RECORDS_MAX = 20_000;
const BATCH_RECORDS = 2_000;

/** Records not known to be written, in the order in which they came. */
export class RecordQueue {
  readonly #rows: HistoryRow[] = [];
  /** The first so many are on their way. */
  #sent = 0;
  #dropped = 0;

  get all(): readonly HistoryRow[] {
    return this.#rows;
  }

  get unsent(): readonly HistoryRow[] {
    return this.#rows.slice(this.#sent);
  }

  add(rows: readonly HistoryRow[]): void {
    this.#rows.push(...rows);
    const tooMany = this.#rows.length - RECORDS_MAX;
    if (tooMany > 0) this.#dropped += this.#rows.splice(this.#sent, tooMany).length;
  }

  /** For one write; `null`: all are on their way. */
  next(): readonly HistoryRow[] | null {
    const batch = this.#rows.slice(this.#sent, this.#sent + BATCH_RECORDS);
    this.#sent += batch.length;
    return batch.length === 0 ? null : batch;
  }

  /** The oldest are. */
  written(count: number): void {
    this.#rows.splice(0, count);
    this.#sent -= count;
  }

  /** Those on their way came back. */
  again(): void {
    this.#sent = 0;
  }

  /** How many were dropped since the last call. */
  dropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
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
