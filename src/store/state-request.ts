// Requests to the state file and their replies: plain data, because the writer may be another process.

import type { StoreErrorKind } from "../model/errors.ts";
import type { HistoryRow, RecentHistory } from "./history.ts";
import type { LedgerChanges, LedgerRow } from "./ledger-rows.ts";

/** Answered in order. */
export type StateRequest =
  /** Reads everything, without writing. */
  | { readonly kind: "read" }
  /** Prepares the file for writing, and sets this process's mark. */
  | { readonly kind: "open" }
  /** Reads what other processes wrote since this one last read. */
  | { readonly kind: "refresh" }
  | StateWrite
  | StateAppend
  /** Removes the marks of processes that ended. */
  | { readonly kind: "drop-marks"; readonly ids: readonly string[] }
  /** Removes this process's mark, unless something before could not be written. */
  | { readonly kind: "close" }
  /** The content that was read is invalid. */
  | { readonly kind: "put-aside"; readonly message: string };

export interface StateWrite {
  readonly kind: "write";
  /** Based on what this process last read or wrote. */
  readonly changes: LedgerChanges;
}

/** Records; a request does not wait for the answer to the one before. */
export interface StateAppend {
  readonly kind: "append";
  /** No earlier request is unanswered. After a failure all others are refused, so that records keep their order. */
  readonly isFirst: boolean;
  readonly records: readonly HistoryRow[];
  /**
   * Removed images that the sender's ledger no longer has: if it is killed before its next `write`, they must not
   * remain.
   */
  readonly forgotten: readonly string[];
  /** Observed time, as digits. */
  readonly watched: string;
  /** After a pass: the log may be checkpointed, and the history pruned. */
  readonly tidy: boolean;
}

/** What a reply says of those that write the file. */
export interface FileState {
  /** Marks of other processes. */
  readonly marks: readonly string[];
  /** The last process closed the file, and nobody has changed it since. Only in reply to `read`. */
  readonly isClosed?: boolean;
  /** The file lacks what this process wrote. */
  readonly isOlder?: boolean;
}

export type StateReply =
  | ({ readonly kind: "done" } & FileState)
  /**
   * The content; its rows were sent before. In reply to a write: another process wrote meanwhile, and nothing was
   * written.
   */
  | ({ readonly kind: "read"; readonly recent: RecentHistory } & FileState)
  /** A new, empty file; `moved` says what happened to the previous one, if there was any. */
  | { readonly kind: "fresh"; readonly moved: string | null }
  | { readonly kind: "failed"; readonly error: StoreErrorKind; readonly message: string };

/** Sends requests to the state file, here or in another process. Rejects only if it cannot be reached. */
export interface StateChannel {
  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply>;
  /** `last` is written once the disk accepts it, without a reply. */
  close(last: readonly StateRequest[]): Promise<void>;
}
