// Requests to the state file and their replies: plain data, because the writer may be another process.

import type { StoreErrorKind } from "../../model/errors.ts";
import type { HistoryRow, RecentHistory } from "../history/history.ts";
import type { LedgerChanges, LedgerRow } from "../ledger/ledger.ts";

/** Answered in order. */
export type StateRequest =
  /** Reads everything, without writing. */
  | { readonly kind: "read" }
  /** Prepares the file for writing. */
  | { readonly kind: "open" }
  /** Reads what other processes wrote since the known revision. */
  | { readonly kind: "refresh"; readonly known: string }
  | StateWrite
  | StateAppend
  /** The content that was read is invalid. */
  | { readonly kind: "put-aside"; readonly message: string };

export interface StateWrite {
  readonly kind: "write";
  /** The revision that `changes` are based on; `null`: that of the previous reply. */
  readonly known: string | null;
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

export type StateReply =
  | { readonly kind: "done"; readonly revision: string }
  /**
   * The content; its rows were sent before. In reply to a write: another process wrote meanwhile, and nothing was
   * written.
   */
  | {
      readonly kind: "read";
      readonly revision: string;
      readonly recent: RecentHistory;
    }
  /** A new, empty file; `moved` says what happened to the previous one, if there was any. */
  | { readonly kind: "fresh"; readonly moved: string | null }
  | { readonly kind: "failed"; readonly error: StoreErrorKind; readonly message: string };

/** Sends requests to the state file, here or in another process. Rejects only if it cannot be reached. */
export interface StateChannel {
  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply>;
  /** `last` is written once the disk accepts it, without a reply. */
  close(last: readonly StateRequest[]): Promise<void>;
}
