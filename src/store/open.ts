// Opens the state directory: with a store that writes, for `gc` and `run`, and with a reader that changes nothing, for
// the rest.

import type { Database } from "bun:sqlite";

import type { StoreErrorKind } from "../model/errors.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { OtherWriters } from "../model/ports.ts";
import {
  isClosed,
  openForReading,
  openInMemory,
  type StatePaths,
  statePaths,
} from "./connection.ts";
import { type Notify, storeError } from "./errors.ts";
import type { HistoryKind } from "./history.ts";
import {
  type HistoryQuery,
  newestSamples,
  type PassQuery,
  queryHistory,
  queryPasses,
  type RemovalQuery,
} from "./history.ts";
import { ledgerOf, readLedgerRows } from "./ledger-rows.ts";
import { Recorder } from "./recorder.ts";
import type { StoreOptions } from "./store.ts";

/** Never rejects: if the disk is unavailable, the store is in memory only, and reports it. */
export async function openStore(options: StoreOptions): Promise<Recorder> {
  const recorder = new Recorder(options);
  await recorder.open();
  return recorder;
}

export interface ReaderOptions {
  /** `--state-dir`. */
  readonly directory: string;
  readonly notify: Notify;
  /** The processes that write the directory; absent: none is looked for. */
  readonly others?: () => OtherWriters;
}

/** `failure`: why the file could not be read, so that nothing is known; `null`: it was read, or there is none. */
export type StoreReader = ReturnType<typeof openStoreReader>;

/** Creates and changes nothing. If the file cannot be read, notifies, and returns an empty reader. */
export function openStoreReader(options: ReaderOptions) {
  const paths = statePaths(options.directory);
  try {
    const before = options.others?.();
    const wasClosed = isClosed(paths);
    const db = openForReading(paths);
    const ledger = ledgerOf(readLedgerRows(db));
    const others = [before, options.others?.()].filter((it) => it !== undefined);
    // A process that runs has opened the file, and will close it.
    const isInOrder = wasClosed || others.length === 0 || others.some((it) => it.isOneAlive);
    const ageRestartDue =
      ledger.observedAt !== null && (!isInOrder || others.some((it) => it.isOneBehind));
    const known = ageRestartDue ? { ...ledger, ageRestartDue } : ledger;
    return readerOf(db, { paths, ledger: known, failure: null });
  } catch (thrown) {
    const error = storeError(`read ${paths.database}`, thrown);
    const next =
      error.kind === "corrupt"
        ? "every image counts as new; the next crigc gc or crigc run moves the file aside and starts a new one"
        : "earlier records are unavailable, and every image counts as new";
    options.notify(`${error.message}; ${next}`);
    return readerOf(openInMemory(), { paths, ledger: emptyLedger, failure: error.kind });
  }
}

interface ReadState {
  readonly paths: StatePaths;
  readonly ledger: Ledger;
  readonly failure: StoreErrorKind | null;
}

/** The queries throw `StoreError`, and answer with the newest first. */
function readerOf(db: Database, { paths, ledger, failure }: ReadState) {
  const asked = <T>(query: () => T): T => {
    try {
      return query();
    } catch (error) {
      throw storeError(`read the history in ${paths.database}`, error);
    }
  };
  const newest =
    <Kind extends HistoryKind>(kind: Kind) =>
    (query: HistoryQuery) =>
      asked(() => queryHistory(db, kind, query));
  return {
    failure,
    ledger: () => ledger,
    removals: (query: RemovalQuery) => asked(() => queryHistory(db, "removal", query)),
    passes: (query: PassQuery) => asked(() => queryPasses(db, query)),
    events: newest("event"),
    /** By when they came back. */
    regrets: newest("regret"),
    /** Oldest first; only the newest `limit`. */
    samples: (query: HistoryQuery) => newest("sample")(query).toReversed(),
    /** In the order in which they were recorded. */
    newestSamples: () => asked(() => newestSamples(db)),
    [Symbol.dispose]: () => db.close(),
  };
}
