// What is asked of the state file and answered: plain data, because whoever writes the file may be another process.

import type { StoreErrorKind } from "../../model/errors.ts";
import type { HistoryRow, RecentHistory } from "../history/history.ts";
import type { LedgerChanges, LedgerRow } from "../ledger/ledger.ts";

/** Answered one after another, in their order. */
export type StateRequest =
  /** All that is known, without writing anything. */
  | { readonly kind: "read" }
  /** Makes the file ready to be written. */
  | { readonly kind: "open" }
  /** What other processes wrote since the revision that is known. */
  | { readonly kind: "refresh"; readonly known: string }
  | StateWrite
  | StateAppend
  /** What was read makes no sense. */
  | { readonly kind: "put-aside"; readonly message: string };

export interface StateWrite {
  readonly kind: "write";
  /** The revision from which `changes` lead on; `null`: the one that the answer before had. */
  readonly known: string | null;
  readonly changes: LedgerChanges;
}

/** Records; a request does not wait for the answer to the one before. */
export interface StateAppend {
  readonly kind: "append";
  /** Nothing that was sent before is unanswered. Others are refused once one has failed, so that records keep their order. */
  readonly isFirst: boolean;
  readonly records: readonly HistoryRow[];
  /** Removed images that the asker's ledger no longer has: a process killed before its next `write` must not leave them known. */
  readonly forgotten: readonly string[];
  /** Observed time, as digits. */
  readonly watched: string;
  /** A pass is over: the log may be folded, and the history pruned. */
  readonly tidy: boolean;
}

export type StateReply =
  | { readonly kind: "done"; readonly revision: string }
  /** What is there; its rows went before. To a write: another process wrote meanwhile, and nothing was written. */
  | {
      readonly kind: "read";
      readonly revision: string;
      readonly recent: RecentHistory;
    }
  /** There is a new file, in which nothing is: `moved` says what became of the one before, if there was any. */
  | { readonly kind: "fresh"; readonly moved: string | null }
  | { readonly kind: "failed"; readonly error: StoreErrorKind; readonly message: string };

/** Takes requests to the state file, here or in another process. Rejects only where there is no way to it. */
export interface StateChannel {
  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply>;
  /** `last` is written once the disk takes it, with nobody there to hear of it. */
  close(last: readonly StateRequest[]): Promise<void>;
}
