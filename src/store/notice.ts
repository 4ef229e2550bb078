// What the store reports to its opener, once when a condition begins and once when it ends.

import type { StoreErrorKind } from "../model/errors.ts";

export interface StoreNotice {
  readonly kind:
    "broken-moved-aside" | "memory-only" | "write-failed" | "write-recovered" | "records-lost";
  /** `null` if nothing failed. */
  readonly error: StoreErrorKind | null;
  readonly message: string;
}

/** The disk's current problem, reported when it begins and when it ends. */
export class Failures {
  readonly #directory: string;
  readonly #notify: (notice: StoreNotice) => void;
  #last: StoreErrorKind | null = null;

  constructor(directory: string, notify: (notice: StoreNotice) => void) {
    this.#directory = directory;
    this.#notify = notify;
  }

  /** `null` if there is no problem. */
  get last(): StoreErrorKind | null {
    return this.#last;
  }

  failed(
    kind: StoreNotice["kind"],
    { error, message }: { readonly error: StoreErrorKind; readonly message: string },
  ): void {
    if (this.#last !== error) this.#notify({ kind, error, message });
    this.#last = error;
  }

  hangs(): void {
    const message = `the disk of ${this.#directory} does not respond; new records stay in memory until it does`;
    this.failed("write-failed", { error: "hanging", message });
  }

  /** Nobody will try again: this process ends. */
  lost(removals: number): void {
    const what = removals === 1 ? "1 removal" : `${removals} removals`;
    const history = removals === 0 ? "" : `the records of ${what} and `;
    const message = `${history}the newest ledger could not be written to ${this.#directory} before crigc ended, and ${removals === 0 ? "is" : "are"} lost`;
    this.#notify({ kind: "records-lost", error: null, message });
  }

  /** `lost`: records that were dropped meanwhile. */
  recovered(lost: number): void {
    if (this.#last !== null)
      this.#notify({
        kind: "write-recovered",
        error: null,
        message: `the ledger in ${this.#directory} can be written again; the records kept in memory are on disk`,
      });
    this.#last = null;
    if (lost > 0)
      this.#notify({
        kind: "records-lost",
        error: null,
        message: `${lost} records of the history were lost while ${this.#directory} could not be written`,
      });
  }
}
