// Failures of the state file: the only file that knows the codes of SQLite, and when a failure is reported.

import { SQLiteError } from "bun:sqlite";

import { FieldError } from "../model/codec.ts";
import { messageOf, StoreError, type StoreErrorKind } from "../model/errors.ts";
import type { WriterPresence } from "../model/ports.ts";

/** `attempt`: what failed, such as `open /var/lib/crigc/crigc.db`. */
export function storeError(attempt: string, thrown: unknown): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const kind = kindOf(thrown);
  const next = DENIED.has(codeOf(thrown)) ? ["run as root (sudo crigc …)"] : advice[kind];
  const what = [`cannot ${attempt}: ${reasonOf(thrown)}`, ...next].join("; ");
  return new StoreError(kind, what, { cause: thrown });
}

const DENIED: ReadonlySet<string> = new Set(["EACCES", "EPERM", "SQLITE_PERM"]);

const advice: Readonly<Record<StoreErrorKind, readonly string[]>> = {
  // No advice: a writer moves the file aside, a reader leaves it in place.
  corrupt: [],
  unreadable: ["check the permissions and the disk of the state directory"],
  full: ["free space on the disk of the state directory"],
  busy: ["check whether another program has the file open"],
  hanging: ["check the disk of the state directory"],
  write: ["check that the state directory can be written"],
};

function kindOf(thrown: unknown): StoreErrorKind {
  if (thrown instanceof FieldError || thrown instanceof SyntaxError) return "corrupt";
  const code = codeOf(thrown);
  const found = kindsByCode.find(([prefix]) => code.startsWith(prefix));
  return found === undefined ? "write" : found[1];
}

// The first matching prefix decides.
const kindsByCode: readonly (readonly [string, StoreErrorKind])[] = [
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "corrupt"],
  // A table or column that the schema version promises is missing.
  ["SQLITE_ERROR", "corrupt"],
  ["SQLITE_MISMATCH", "corrupt"],
  ["SQLITE_FULL", "full"],
  ["SQLITE_IOERR_SHMSIZE", "full"],
  ["SQLITE_IOERR_READ", "unreadable"],
  ["SQLITE_IOERR_SHORT_READ", "unreadable"],
  ["SQLITE_IOERR_CORRUPTFS", "unreadable"],
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_CANTOPEN", "unreadable"],
  ["SQLITE_PERM", "unreadable"],
  ["SQLITE_AUTH", "unreadable"],
  ["ENOSPC", "full"],
  ["EDQUOT", "full"],
  ["EACCES", "unreadable"],
  ["EPERM", "unreadable"],
  ["EIO", "unreadable"],
  ["ENOTDIR", "unreadable"],
];

function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error) || !("code" in thrown)) return "";
  return typeof thrown.code === "string" ? thrown.code : "";
}

function reasonOf(thrown: unknown): string {
  const code = codeOf(thrown);
  if (DENIED.has(code)) return "permission denied";
  const isSqlite = thrown instanceof SQLiteError;
  return isSqlite && code !== "" ? `${messageOf(thrown)} (${code})` : messageOf(thrown);
}

/** Receives what the operator should hear of, once when a condition begins and once when it ends. */
export type Notify = (message: string) => void;

/** The disk's current problem, reported when it begins and when it ends. */
export class Failures {
  readonly #directory: string;
  readonly #notify: Notify;
  readonly #presence: WriterPresence | undefined;
  #last: StoreErrorKind | null = null;

  constructor(directory: string, notify: Notify, presence?: WriterPresence) {
    this.#directory = directory;
    this.#notify = notify;
    this.#presence = presence;
  }

  /** `null` if there is no problem. */
  get last(): StoreErrorKind | null {
    return this.#last;
  }

  failed(error: StoreErrorKind, message: string): void {
    if (this.#last !== error) this.#notify(message);
    this.#last = error;
    this.#presence?.behind(true);
  }

  hangs(): void {
    this.failed(
      "hanging",
      `the disk of ${this.#directory} does not respond; new records stay in memory until it does`,
    );
  }

  /** Nobody will try again: this process ends. */
  lost(removals: number): void {
    const what = removals === 1 ? "1 removal" : `${removals} removals`;
    const history = removals === 0 ? "" : `the records of ${what} and `;
    this.#notify(
      `${history}the newest ledger could not be written to ${this.#directory} before crigc ended, and ${removals === 0 ? "is" : "are"} lost`,
    );
  }

  /** `lost`: records that were dropped meanwhile. */
  recovered(lost: number): void {
    const directory = this.#directory;
    if (this.#last !== null)
      this.#notify(
        `the ledger in ${directory} can be written again; the records kept in memory are on disk`,
      );
    this.#last = null;
    this.#presence?.behind(false);
    if (lost > 0)
      this.#notify(
        `${lost} records of the history were lost while ${directory} could not be written`,
      );
  }
}
