// What waits to be written beside the ledger: settings, and records of the history, bounded.

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
    this.#dropOldest();
  }

  set(key: string, value: string): void {
    this.#settings.set(key, value);
  }

  hasSetting(key: string): boolean {
    return this.#settings.has(key);
  }

  get isEmpty(): boolean {
    return this.#records.length === 0 && this.#settings.size === 0;
  }

  /** What goes into the next transaction; it comes back with `putBack` where it was not written. */
  take(): Batch {
    const batch = { settings: this.#settings, records: this.#records.slice(0, batchRecords) };
    this.#settings = new Map();
    this.#records = this.#records.slice(batchRecords);
    return batch;
  }

  putBack({ settings, records }: Batch): void {
    this.#settings = new Map([...settings, ...this.#settings]);
    this.#records = [...records, ...this.#records];
    this.#dropOldest();
  }

  /** How many records were lost since the last call. */
  takeLost(): number {
    const lost = this.#lost;
    this.#lost = 0;
    return lost;
  }

  #dropOldest(): void {
    const tooMany = this.#records.length - recordsMax;
    if (tooMany <= 0) return;
    this.#records = this.#records.slice(tooMany);
    this.#lost += tooMany;
  }
}
