// Requests to the state file and their replies: plain data, because the writer may be another process.

import type { StoreErrorKind } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import { storeError } from "./errors.ts";
import type { HistoryRow, RecentHistory } from "./history.ts";
import { type LedgerChange, LedgerReading, type LedgerRow } from "./ledger-rows.ts";
import type { TraceRequest } from "./trace.ts";

/** Answered in order. */
export type StateRequest =
  /** Reads everything, without writing. */
  | { readonly kind: "read" }
  /** Prepares the file for writing, sets this process's mark, and removes those of processes that ended. */
  | { readonly kind: "open"; readonly dead: readonly string[] }
  /** Reads what other processes wrote since this one last read. */
  | { readonly kind: "refresh" }
  | StateWrite
  | TraceRequest
  /** Removes this process's mark, unless something before could not be written. */
  | { readonly kind: "close" }
  /** The content that was read is invalid. */
  | { readonly kind: "put-aside"; readonly message: string };

/**
 * A request does not wait for the reply to the one before. Its records are written first, in a transaction of their own,
 * because a disk that is full for a whole ledger often has room for a row; the changes only to what they are based on.
 */
export interface StateWrite {
  readonly kind: "write";
  /** No earlier request is unanswered. After a failure the others are refused, so that what they write keeps its order. */
  readonly isFirst: boolean;
  /** `basis` of the last reply that brought the file's content; `null`: none did. */
  readonly basis: string | null;
  readonly records: readonly HistoryRow[];
  readonly changes: readonly LedgerChange[];
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
  /** The content; its rows were sent before. In reply to a write: another process wrote it meanwhile. */
  | ({ readonly kind: "read"; readonly basis: string; readonly recent: RecentHistory } & FileState)
  /** A new, empty file; `moved` says what happened to the previous one, if there was any. */
  | { readonly kind: "fresh"; readonly basis: string; readonly moved: string | null }
  | {
      readonly kind: "failed";
      readonly error: StoreErrorKind;
      readonly message: string;
      /** The records of this write are on disk; its changes are not. */
      readonly hasRecords?: boolean;
      /** As in `FileState`: with its records, the file got the number of this write, and does not tell again. */
      readonly isOlder?: boolean | undefined;
    };

/** Sends requests to the state file, here or in another process. Rejects only if it cannot be reached. */
export interface StateChannel {
  ask(request: StateRequest, onRows: (rows: readonly LedgerRow[]) => void): Promise<StateReply>;
  /** `last` is written once the disk accepts it, without a reply. */
  close(last: readonly StateRequest[]): Promise<void>;
}

export type LedgerAnswer =
  | Exclude<StateReply, { kind: "read" }>
  | (Extract<StateReply, { kind: "read" }> & { readonly ledger: Ledger });

/** The reply with the ledger that it brings. Has a file with rows that cannot be understood moved aside. Never rejects. */
export async function askLedger(
  channel: StateChannel,
  directory: string,
  request: StateRequest,
): Promise<LedgerAnswer> {
  const reading = new LedgerReading();
  let wrong: unknown = null;
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
  }
}
