/** Reads a state directory without changing anything: the ledger, and the history by scanning it. */

import type { StoreErrorKind } from "../model/errors.ts";
import type { DiskSample, PassRow, Regret, Removal } from "../model/history.ts";
import { isGone } from "../model/history.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Event } from "../model/pass.ts";
import type { Clocks } from "../model/snapshot.ts";
import { fromRfc3339, type Instant, plus } from "../model/time.ts";
import { statePaths, type StatePlaces, storeError } from "./files.ts";
import { historyLines } from "./history-file.ts";
import { readState } from "./read-state.ts";
import { mayBe, parsedLine, type RecordKind, type RowOf, rowOf } from "./records.ts";

export interface HistoryQuery {
  readonly since?: Instant | undefined;
  /** Exclusive. */
  readonly until?: Instant | undefined;
  /** Absent: all that the history keeps. */
  readonly limit?: number;
}

export interface PassQuery extends HistoryQuery {
  /** `false`: only passes that had something to do, or failed to find out. */
  readonly idle?: boolean | undefined;
}

export interface RemovalQuery extends HistoryQuery {
  readonly kinds?: readonly Removal["kind"][] | undefined;
  /** Codes of reasons or triggers. */
  readonly reasons?: readonly string[] | undefined;
  readonly results?: readonly Removal["result"][] | undefined;
  /** Part of an ID or name, case-insensitive. */
  readonly text?: string | undefined;
  readonly passId?: string | undefined;
}

export interface ReaderOptions extends StatePlaces {
  readonly clocks: () => Clocks;
  readonly notify: (message: string) => void;
  /** Whether no process is writing. */
  readonly isOwner: boolean;
}

export type StateReader = ReturnType<typeof openReader>;

/** What cannot be read is reported and missing. The queries throw `StoreError`, and answer with the newest first. */
export function openReader(options: ReaderOptions) {
  const { notify, clocks, isOwner } = options;
  const found = readState(options, { clocks: clocks(), isOwner });
  const paths = statePaths(options);
  for (const { path, why } of found.faults) {
    const next = path === paths.ledger ? "; every image counts as new" : "";
    notify(
      `cannot use ${path}: ${why}${next}; the next crigc gc or crigc run moves the file aside`,
    );
  }
  const unusable = new Set(found.faults.map(({ path }) => path));
  const failure: StoreErrorKind | null = unusable.size === 0 ? null : "corrupt";
  const rows = <Kind extends RecordKind>(kind: Kind, query: HistoryQuery): RowOf<Kind>[] => {
    try {
      return rowsIn(options, { kind, unusable, query });
    } catch (thrown) {
      throw storeError(`read the history in ${options.directory}`, thrown);
    }
  };
  const removals = (query: RemovalQuery): readonly Removal[] =>
    newest(rows("removal", query).filter(removalFilter(query)), query);
  return {
    /** Whether a file could not be used. */
    failure,
    ledger: (): Ledger => (unusable.has(paths.ledger) ? emptyLedger : found.ledger),
    removals,
    passes: (query: PassQuery): readonly PassRow[] =>
      newest(
        rows("pass", query).filter(
          (row) =>
            isWithin(query, row.startedAt) &&
            (query.idle === undefined || query.idle === isIdle(row)),
        ),
        query,
      ),
    events: (query: HistoryQuery): readonly Event[] =>
      newest(
        rows("warning", query).filter(({ at }) => isWithin(query, at)),
        query,
      ),
    /** Images that came back, by when they did. */
    regrets: (query: HistoryQuery): readonly Regret[] =>
      newest(
        returnedImages(rows("removal", {}), found.ledger).filter(({ at }) => isWithin(query, at)),
        query,
      ),
    /** The oldest first; only the newest `limit`. */
    samples: (query: HistoryQuery): readonly DiskSample[] =>
      newest(
        rows("disk", query).filter(({ at }) => isWithin(query, at)),
        query,
      ).toReversed(),
  };
}

function rowsIn<Kind extends RecordKind>(
  places: StatePlaces,
  {
    kind,
    unusable,
    query,
  }: {
    readonly kind: Kind;
    readonly unusable: ReadonlySet<string>;
    readonly query: HistoryQuery;
  },
): RowOf<Kind>[] {
  const found: RowOf<Kind>[] = [];
  for (const line of historyLines(places, unusable)) {
    if (!mayBe(line, kind)) continue;
    const document = parsedLine(line);
    // Reading all fields of a record takes ten times as long as parsing it.
    const at = fromRfc3339(String(document?.["at"] ?? document?.["startedAt"]));
    if (document === null || at === null || !isWithin(query, at)) continue;
    const row = rowOf(kind, document);
    if (row !== null) found.push(row);
  }
  return found;
}

const isWithin = ({ since, until }: HistoryQuery, at: Instant): boolean =>
  (since === undefined || at >= since) && (until === undefined || at < until);

function newest<Row>(rows: readonly Row[], { limit }: HistoryQuery): readonly Row[] {
  const all = rows.toReversed();
  return limit === undefined ? all : all.slice(0, Math.max(0, Math.trunc(limit)));
}

function removalFilter(query: RemovalQuery): (row: Removal) => boolean {
  const { kinds, reasons, results, passId } = query;
  const text = query.text?.toLowerCase() ?? "";
  return (row) =>
    isWithin(query, row.at) &&
    (kinds?.includes(row.kind) ?? true) &&
    (reasons === undefined || reasons.includes(row.reason) || reasons.includes(row.trigger)) &&
    (results?.includes(row.result) ?? true) &&
    (passId === undefined || row.passId === passId) &&
    [row.subject, ...row.names].some((it) => it.toLowerCase().includes(text));
}

const isIdle = (row: PassRow): boolean =>
  row.imagesEnd === "nothing-to-do" && row.error === null && row.removed + row.failed === 0;

/**
 * Removed images that are listed again, under their ID or one of their names, or that were removed again. In the order
 * in which they came back.
 */
function returnedImages(removals: readonly Removal[], ledger: Ledger): readonly Regret[] {
  const away = new Map<string, Removal>();
  const found: Regret[] = [];
  const arrived = (
    image: Pick<Regret, "at" | "returnedAs" | "sizeBytes"> & { names: readonly string[] },
  ) => {
    const names = [image.returnedAs, ...image.names];
    const removal = names.map((name) => away.get(name)).find((it) => it !== undefined);
    if (removal === undefined || image.at <= endOf(removal)) return;
    // Each removal counts once.
    for (const name of namesOf(removal)) if (away.get(name) === removal) away.delete(name);
    const { at, returnedAs, sizeBytes } = image;
    found.push({ ...removal, removedAt: removal.at, at, returnedAs, sizeBytes });
  };
  for (const removal of removals) {
    if (removal.kind !== "image" || !isGone(removal)) continue;
    const { subject: returnedAs, names, firstSeenAt: at } = removal;
    if (at !== null) arrived({ at, returnedAs, names, sizeBytes: removal.reportedBytes ?? 0n });
    for (const name of namesOf(removal)) away.set(name, removal);
  }
  for (const [returnedAs, { firstSeenAt: at, names, sizeBytes }] of ledger.images)
    arrived({ at, returnedAs, names: names.split("\n"), sizeBytes });
  return found.toSorted((one, other) => (one.at < other.at ? -1 : 1));
}

const namesOf = ({ subject, names }: Removal): readonly string[] => [subject, ...names];

const endOf = ({ at, took }: Removal): Instant => (took === null ? at : plus(at, took));
