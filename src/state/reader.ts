/** Reads a state directory without changing anything: the ledger as far as it can be trusted, and the history by scanning it. */

import { StoreError, type StoreErrorKind } from "../model/errors.ts";
import type { PassRow, Regret, Removal } from "../model/history.ts";
import { imageId } from "../model/ids.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { Event } from "../model/pass.ts";
import { duration, fromRfc3339, type Instant, instant, plus } from "../model/time.ts";
import { adviceOn } from "../node/files.ts";
import { type Fault, readLedger, statePaths, type StatePlaces, storeError } from "./files.ts";
import {
  headOf,
  historyLines,
  isImageGone,
  rawOf,
  type RawRecord,
  type RecordKind,
  type RowOf,
  rowOf,
} from "./history-file.ts";

export interface FoundState {
  readonly ledger: Ledger;
  /** Of the last record in the history; 0: none. */
  readonly lastRecord: number;
  /** Files that cannot be used. */
  readonly faults: readonly Fault[];
  /** Lines of the history that are no records, beyond what the ledger knows. */
  readonly brokenLines: number;
}

/** `isOwner`: no other process is writing, so a ledger that is not closed is what a crash left. */
export function readState(places: StatePlaces, isOwner: boolean): FoundState {
  const paths = statePaths(places);
  const faults: Fault[] = [];
  const [stored = null, spare = null] = [paths.ledger, paths.spareLedger].map((path) => {
    try {
      return readLedger(places, path);
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      faults.push({ path, why: thrown.message, advice: adviceOn(thrown.cause) });
      return null;
    }
  });
  const isUnbroken = faults.length === 0;
  // The spare one is there only if the disk did not take it.
  const isSpare = spare !== null && spare.ledger.totalUptime >= (stored?.ledger.totalUptime ?? 0n);
  const { ledger, closed, lastRecord } = (isSpare ? spare : stored) ?? NOTHING;
  const images = new Map(ledger.images);
  let last = 0;
  let broken = 0;
  for (const line of historyLines(places, (fault) => faults.push(fault))) {
    const head = headOf(line);
    if (head === null) {
      broken += 1;
      continue;
    }
    last = head.seq;
    // The process that wrote the ledger has reported them.
    if (last <= lastRecord) broken = 0;
    if (head.record !== "removal" || last <= lastRecord) continue;
    const raw = rawOf(line);
    // If it is listed again, it has come back, and is new.
    if (isImageGone(raw)) images.delete(imageId(String(raw["subject"])));
  }
  // An older copy, or one beside another history, may have missed anything; a deleted history tells nothing.
  const isWhole = isUnbroken && closed && (last === lastRecord || last === 0);
  return {
    ledger: {
      ...ledger,
      images: images.size === ledger.images.size ? ledger.images : images,
      ageRestartDue: ledger.observedAt !== null && (ledger.ageRestartDue || (isOwner && !isWhole)),
    },
    lastRecord: Math.max(last, lastRecord),
    faults,
    brokenLines: broken,
  };
}

const NOTHING = { ledger: emptyLedger, closed: true, lastRecord: 0 };

export interface HistoryQuery {
  readonly since?: Instant | undefined;
  /** Absent: all that the history keeps. */
  readonly limit?: number;
}

export interface RemovalQuery extends HistoryQuery {
  readonly kinds?: readonly Removal["kind"][] | undefined;
  /** Codes of reasons or triggers. */
  readonly reasons?: readonly string[] | undefined;
  readonly results?: readonly Removal["result"][] | undefined;
  /** Part of an ID or name, case-insensitive. */
  readonly text?: string | undefined;
}

export interface ReaderOptions extends StatePlaces {
  readonly notify: (message: string) => void;
  /** Whether no process is writing. */
  readonly isOwner: boolean;
}

export type StateReader = ReturnType<typeof openReader>;

/** What cannot be read is reported and missing. The queries throw `StoreError`, and answer with the newest first. */
export function openReader(options: ReaderOptions) {
  const { directory, notify, isOwner } = options;
  const { ledger, faults } = readState(options, isOwner);
  for (const { path, why, advice } of faults) {
    const next = path === statePaths(options).ledger ? "; every image counts as new" : "";
    const last = advice === "" ? "; the next crigc gc or crigc run moves the file aside" : "";
    notify(`cannot use ${path}: ${why}${advice}${next}${last}`);
  }
  const failure: StoreErrorKind | null = faults.length === 0 ? null : "corrupt";
  const raws = (kind: RecordKind, isWanted: (raw: RawRecord) => boolean): readonly RawRecord[] => {
    const wanted: RawRecord[] = [];
    try {
      for (const line of historyLines(options, () => undefined)) {
        if (headOf(line)?.record !== kind) continue;
        const raw = rawOf(line);
        if (isWanted(raw)) wanted.push(raw);
      }
      return wanted;
    } catch (thrown) {
      throw storeError(`read the history in ${directory}`, thrown);
    }
  };
  const newest = <Kind extends RecordKind>(
    kind: Kind,
    query: HistoryQuery,
    isWanted: (raw: RawRecord) => boolean = () => true,
  ): readonly RowOf<Kind>[] =>
    newestOf(
      raws(kind, (raw) => isWithin(query, raw) && isWanted(raw)),
      query,
    ).flatMap((raw) => rowOf(kind, raw) ?? []);
  return {
    /** Whether a file could not be used. */
    failure,
    ledger: (): Ledger => ledger,
    removals: (query: RemovalQuery): readonly Removal[] =>
      newest("removal", query, removalFilter(query)),
    passes: (query: HistoryQuery): readonly PassRow[] => newest("pass", query),
    events: (query: HistoryQuery): readonly Event[] => newest("warning", query),
    /** Images that came back, by when they did. */
    regrets: (query: HistoryQuery): readonly Regret[] => {
      const returned = returnedImages(raws("removal", isImageGone), ledger);
      return newestOf(
        returned.filter(({ at }) => isIn(query, at)),
        query,
      );
    },
  };
}

const isIn = ({ since }: HistoryQuery, at: Instant): boolean => since === undefined || at >= since;

function isWithin(query: HistoryQuery, { at, startedAt = at }: RawRecord): boolean {
  if (query.since === undefined) return true;
  const time = fromRfc3339(String(startedAt));
  return time !== null && isIn(query, time);
}

function newestOf<Row>(
  rows: readonly Row[],
  { limit = rows.length }: HistoryQuery,
): readonly Row[] {
  return rows.slice(Math.max(0, rows.length - Math.trunc(limit))).toReversed();
}

function removalFilter(query: RemovalQuery): (raw: RawRecord) => boolean {
  const { kinds, reasons, results } = query;
  const text = query.text?.toLowerCase();
  const isOneOf = (words: readonly string[] | undefined, ...found: readonly unknown[]): boolean =>
    words?.some((word) => found.includes(word)) ?? true;
  return (raw) =>
    isOneOf(kinds, raw["kind"]) &&
    isOneOf(reasons, raw["reason"], raw["trigger"]) &&
    isOneOf(results, raw["result"]) &&
    (text === undefined || namesOf(raw).some((it) => it.toLowerCase().includes(text)));
}

/**
 * Removed images that are listed again, under their ID or one of their names, or that were removed again. In the order
 * in which they came back.
 */
function returnedImages(removals: readonly RawRecord[], ledger: Ledger): readonly Regret[] {
  const away = new Map<string, RawRecord>();
  const found: Regret[] = [];
  const arrived = (names: readonly string[], back: () => Returned | null): void => {
    const raw = names.map((name) => away.get(name)).find((it) => it !== undefined);
    if (raw === undefined) return;
    const returned = back();
    if (returned === null || returned.at <= endOf(raw)) return;
    // Each removal counts once.
    for (const name of namesOf(raw)) if (away.get(name) === raw) away.delete(name);
    const removal = rowOf("removal", raw);
    if (removal !== null) found.push({ ...removal, removedAt: removal.at, ...returned });
  };
  for (const raw of removals) {
    const names = namesOf(raw);
    arrived(names, () => returnedBefore(raw));
    for (const name of names) away.set(name, raw);
  }
  for (const [returnedAs, { firstSeenAt: at, names, sizeBytes }] of ledger.images)
    arrived([returnedAs, ...names.split("\n")], () => ({ at, returnedAs, sizeBytes }));
  return found.toSorted((one, other) => (one.at < other.at ? -1 : 1));
}

type Returned = Pick<Regret, "at" | "returnedAs" | "sizeBytes">;

/** An image that was removed again had come back before. */
function returnedBefore({ firstSeenAt, subject, reportedBytes }: RawRecord): Returned | null {
  const at = fromRfc3339(String(firstSeenAt));
  const sizeBytes = BigInt(Number(reportedBytes ?? 0));
  return at === null ? null : { at, returnedAs: String(subject), sizeBytes };
}

function endOf({ at, tookNs }: RawRecord): Instant {
  const start = fromRfc3339(String(at)) ?? instant(0n);
  return typeof tookNs === "number" ? plus(start, duration(BigInt(tookNs))) : start;
}

/** Its ID first. */
const namesOf = ({ subject, names }: RawRecord): readonly string[] =>
  [subject, ...(Array.isArray(names) ? names : [])].map(String);
