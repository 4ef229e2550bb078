// What waits to be written: the newest ledger, settings, and records of the history, bounded.

import type { HistoryRecord } from "./history-records.ts";

/** At most so many records are kept while the disk refuses them; then the oldest are lost, and counted. */
export const recordsMax = 20_000;
const batchRecords = 2_000;

export interface Batch {
  readonly settings: ReadonlyMap<string, string>;
  readonly records: readonly HistoryRecord[];
}

export class Queue {
  #settings = new Map<string, string>();
  #records: HistoryRecord[] = [];
  #lost = 0;

  add(...records: readonly HistoryRecord[]): void {
    this.#records.push(...records);
    const tooMany = this.#records.length - recordsMax;
    if (tooMany <= 0) return;
    this.#records = this.#records.slice(tooMany);
    this.#lost += tooMany;
  }

  set(key: string, value: string): void {
    this.#settings.set(key, value);
  }

  setting(key: string): string | null {
    return this.#settings.get(key) ?? null;
  }

  get isEmpty(): boolean {
    return this.#records.length === 0 && this.#settings.size === 0;
  }

  /** What goes into the next transaction; it stays here until `written` is told. */
  batch(): Batch {
    return { settings: new Map(this.#settings), records: this.#records.slice(0, batchRecords) };
  }

  /** The batch is on disk. Nothing may have been added since it was taken. */
  written(batch: Batch): void {
    this.#settings = new Map();
    this.#records = this.#records.slice(batch.records.length);
  }

  /** How many records were lost since the last call. */
  takeLost(): number {
    const lost = this.#lost;
    this.#lost = 0;
    return lost;
  }
}
