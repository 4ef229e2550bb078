// Opens the state directory: a store that writes, for `gc` and `run`, and a reader that touches nothing, for the rest.

import type { Database } from "bun:sqlite";

import type { StoreErrorKind } from "../model/errors.ts";
import type { Event } from "../model/event.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Instant } from "../model/time.ts";
import { moveAside } from "./broken.ts";
import {
  openForReading,
  openForWriting,
  openInMemory,
  type StatePaths,
  statePaths,
} from "./connection.ts";
import { DiskStore } from "./disk-store.ts";
import { storeError } from "./errors.ts";
import type { DiskSample, PassRow, Removal } from "./history-records.ts";
import {
  type HistoryQuery,
  queryEvents,
  queryPasses,
  queryRemovals,
  querySamples,
  type RemovalQuery,
} from "./history.ts";
import { ledgerOf } from "./ledger.ts";
import type { StoreNotice } from "./notice.ts";
import type { StateFiles } from "./ports.ts";
import { Recorder } from "./recorder.ts";
import { readLedgerRows, readSetting } from "./state-rows.ts";

export interface StoreOptions {
  /** `--state-dir`. */
  readonly directory: string;
  readonly files: StateFiles;
  /** The wall clock. */
  readonly now: () => Instant;
  /** Told of everything that the operator should hear of, at once and once. */
  readonly notify: (notice: StoreNotice) => void;
}

/** Never throws: where the disk cannot be had, the store is memory alone, and says so. */
export function openStore(options: StoreOptions): Recorder {
  const { files, now, notify } = options;
  const paths = statePaths(options.directory);
  const opened = openOrHeal(paths, options);
  const disk = new DiskStore({ ...opened, paths, files, now, notify });
  return new Recorder(disk);
}

export interface StoreReader {
  /** Why the file could not be read, so that nothing is known; `null`: it was read, or there is none. */
  readonly failure: StoreErrorKind | null;
  ledger(): Ledger;
  setting(key: string): string | null;
  /** The queries throw `StoreError`. */
  removals(query: RemovalQuery): readonly Removal[];
  passes(query: HistoryQuery): readonly PassRow[];
  events(query: HistoryQuery): readonly Event[];
  samples(query: HistoryQuery): readonly DiskSample[];
  close(): void;
}

/** Creates and changes nothing. A file that cannot be read gives a notice and a reader that knows nothing. */
export function openStoreReader(options: Omit<StoreOptions, "now">): StoreReader {
  const paths = statePaths(options.directory);
  try {
    const db = openForReading(paths, options.files);
    return { failure: null, ...readerOf(db, paths, ledgerOf(readLedgerRows(db))) };
  } catch (thrown) {
    const error = storeError(`reading ${paths.database}`, thrown);
    const next =
      error.kind === "corrupt"
        ? "every image counts as new; the next crigc gc or crigc run moves the file aside and starts a new one"
        : "nothing is known from before, and every image counts as new";
    const message = `${error.message}; ${next}`;
    options.notify({ kind: "memory-only", error: error.kind, message });
    return { failure: error.kind, ...readerOf(openInMemory(), paths, emptyLedger) };
  }
}

function readerOf(db: Database, paths: StatePaths, ledger: Ledger): Omit<StoreReader, "failure"> {
  const asked = <T>(query: () => T): T => {
    try {
      return query();
    } catch (error) {
      throw storeError(`reading the history in ${paths.database}`, error);
    }
  };
  return {
    ledger: () => ledger,
    setting: (key) => asked(() => readSetting(db, key)),
    removals: (query) => asked(() => queryRemovals(db, query)),
    passes: (query) => asked(() => queryPasses(db, query)),
    events: (query) => asked(() => queryEvents(db, query)),
    samples: (query) => asked(() => querySamples(db, query)),
    close: () => db.close(),
  };
}

interface Opened {
  readonly db: Database | null;
  readonly ledger: Ledger;
  readonly mayWrite: boolean;
  readonly failure: StoreErrorKind | null;
}

/** A transaction of another process lasts milliseconds; a tool that holds the file does not stop us for longer. */
const openBusyMs = 2000;

function openOrHeal(paths: StatePaths, options: StoreOptions): Opened {
  const first = tryOpen(paths, options.files);
  if (first.kind === "open") return first.opened;
  if (first.error === "newer") {
    const message = `${first.message}; nothing is written there, and memory lasts as long as this process`;
    options.notify({ kind: "memory-only", error: "newer", message });
    return { db: null, ledger: emptyLedger, mayWrite: false, failure: "newer" };
  }
  if (first.error === "corrupt") return startAfresh(paths, options, first.message);
  // A full disk or a read-only one refuses to be opened for writing and can be read all the same.
  const known = tryRead(paths, options.files);
  if (known.kind === "failed" && (known.error === "corrupt" || known.error === "unreadable"))
    return startAfresh(paths, options, known.message);
  const ledger = known.kind === "read" ? known.ledger : emptyLedger;
  return inMemory(options, first, ledger);
}

function startAfresh(paths: StatePaths, options: StoreOptions, what: string): Opened {
  let aside: string;
  try {
    aside = moveAside(paths, options.files, options.now());
  } catch (thrown) {
    const { kind, message } = storeError(`${what}; moving ${paths.database} aside`, thrown);
    return inMemory(options, { error: kind, message }, emptyLedger);
  }
  const message = `${what}; the file is now ${aside}, and every image counts as new`;
  options.notify({ kind: "broken-moved-aside", error: "corrupt", message });
  const again = tryOpen(paths, options.files);
  return again.kind === "open" ? again.opened : inMemory(options, again, emptyLedger);
}

function inMemory(
  options: StoreOptions,
  failed: { readonly error: StoreErrorKind; readonly message: string },
  ledger: Ledger,
): Opened {
  const known = ledger === emptyLedger ? "nothing is known from before" : "what was there was read";
  const message = `${failed.message}; ${known}, and what is new stays in memory until it can be written`;
  options.notify({ kind: "memory-only", error: failed.error, message });
  return { db: null, ledger, mayWrite: true, failure: failed.error };
}

type Failed = {
  readonly kind: "failed";
  readonly error: StoreErrorKind;
  readonly message: string;
};

function tryOpen(
  paths: StatePaths,
  files: StateFiles,
): { readonly kind: "open"; readonly opened: Opened } | Failed {
  let db: Database | null = null;
  try {
    db = openForWriting(paths, files, openBusyMs);
    return {
      kind: "open",
      opened: { db, ledger: ledgerOf(readLedgerRows(db)), mayWrite: true, failure: null },
    };
  } catch (thrown) {
    db?.close();
    const { kind: error, message } = storeError(`opening ${paths.database}`, thrown);
    return { kind: "failed", error, message };
  }
}

function tryRead(
  paths: StatePaths,
  files: StateFiles,
): { readonly kind: "read"; readonly ledger: Ledger } | Failed {
  let db: Database | null = null;
  try {
    db = openForReading(paths, files);
    return { kind: "read", ledger: ledgerOf(readLedgerRows(db)) };
  } catch (thrown) {
    const { kind: error, message } = storeError(`reading ${paths.database}`, thrown);
    return { kind: "failed", error, message };
  } finally {
    db?.close();
  }
}
