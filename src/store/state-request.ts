// Requests to the state file and their replies: plain data, because the writer may be another process.

import type { StoreErrorKind } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import { storeError } from "./errors.ts";
import type { HistoryRow } from "./history.ts";
import { type LedgerChange, LedgerReading, type LedgerRow } from "./ledger-rows.ts";

/** Answered in order; a request does not wait for the reply to the one before. */
export type StateRequest =
  /** Reads everything, without writing. */
  | { readonly kind: "read" }
  /** Prepares the file for writing, and reads what other processes wrote since this revision; `null`: everything. */
  | { readonly kind: "refresh"; readonly revision: string | null }
  | RecordsWrite
  | LedgerWrite
  /** `isLast`: no other process has the file open. Fails if something before could not be written. */
  | { readonly kind: "close"; readonly isLast: boolean }
  /** The content that was read is invalid. */
  | { readonly kind: "put-aside"; readonly message: string };

/** Apart from the ledger, because a disk that is full for a whole ledger often has room for a row. */
export interface RecordsWrite {
  readonly kind: "records";
  /** No earlier records are unanswered. After a failure the others are refused, so that what they write keeps its order. */
  readonly isFirst: boolean;
  readonly records: readonly HistoryRow[];
}

export interface LedgerWrite {
  readonly kind: "ledger";
  /** Revision that the changes are based on, and of the file with them; `null`: unknown. Only a file of that revision is changed. */
  readonly from: string | null;
  readonly to: string;
  readonly changes: readonly LedgerChange[];
  /** After a pass: the log may be checkpointed, and the history pruned. */
  readonly tidy: boolean;
}

/** The ledger of the file, as its requester knows it. */
export interface FileContent {
  readonly ledger: Ledger;
  /** `null`: unknown. */
  readonly revision: string | null;
}

export type StateReply =
  /** `recent`: `recentHistory` as JSON, after a pass. */
  | { readonly kind: "done"; readonly recent?: string }
  /** The content; its rows were sent before. In reply to a write of the ledger: another process wrote it meanwhile. */
  | {
      readonly kind: "read";
      readonly revision: string;
      readonly recent: string;
      /** The last process closed the file, and it was unchanged when this one opened it. */
      readonly isClosed: boolean;
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
