/** Reads the requested part of the history: passes with their removals, or removals with their passes. */

import type { PassRow, Removal } from "../../model/history.ts";
import { hours, type Instant, instant } from "../../model/time.ts";
import type { HistoryReport } from "../../report/document/history.ts";
import type { StoreReader } from "../../store/open.ts";
import type { HistoryRequest } from "./history-request.ts";

export interface HistoryRead {
  readonly report: HistoryReport;
  /** Whether there is more than the limit. */
  readonly cut: boolean;
}

/** More than the history keeps of one kind. */
const EVERYTHING = 100_000;
/** No pass takes longer, so a removal's pass began at most this long before it. */
const PASS_LONGEST = hours(24);

const NOTHING: HistoryReport = { passes: [], removals: [], events: [], regrets: [] };

/** The newest of what was found, the oldest first. */
const cutTo = <Row>(limit: number, found: readonly Row[]) => ({
  shown: found.slice(0, limit).toReversed(),
  cut: found.length > limit,
});

export function readHistory(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { kinds, reasons, results, text, passId } = request;
  if (request.regrets === true) return ofRegrets(store, request);
  if (passId !== undefined) return ofPass(store, request, passId);
  const chosen = [kinds, reasons, results, text].some((it) => it !== undefined);
  return chosen ? byRemovals(store, request) : byPasses(store, request);
}

function byPasses(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { since, until, limit } = request;
  const idle = request.hidesIdle === true ? false : undefined;
  const found = store.passes({ since, until, idle, limit: limit + 1 });
  const { shown: passes, cut } = cutTo(limit, found);
  // Records before the first shown pass belong to passes that are not shown.
  const from = cut ? (passes[0]?.startedAt ?? since) : since;
  const range = { since: from, until, limit: EVERYTHING };
  const removals = store.removals(range).toReversed();
  const events = store.events(range).toReversed();
  const regrets = store.regrets(range).toReversed();
  const hidesIdle =
    request.hidesIdle === true &&
    store.passes({ since: from, until, idle: true, limit: 1 }).length > 0;
  return { report: { passes, removals, events, regrets, hidesIdle }, cut };
}

function ofRegrets(store: StoreReader, { since, until, limit }: HistoryRequest): HistoryRead {
  const { shown: regrets, cut } = cutTo(limit, store.regrets({ since, until, limit: limit + 1 }));
  return { report: { ...NOTHING, regrets }, cut };
}

function byRemovals(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { limit } = request;
  const { shown: removals, cut } = cutTo(limit, store.removals({ ...request, limit: limit + 1 }));
  return { report: { ...NOTHING, passes: passesOf(store, removals), removals }, cut };
}

function passesOf(store: StoreReader, removals: readonly Removal[]): readonly PassRow[] {
  const [first] = removals;
  const last = removals.at(-1);
  if (first === undefined || last === undefined) return [];
  const ids = new Set(removals.map((removal) => removal.passId));
  return store
    .passes({
      since: instant(first.at - PASS_LONGEST),
      until: justAfter(last.at),
      limit: EVERYTHING,
    })
    .filter((pass) => ids.has(pass.id))
    .toReversed();
}

function ofPass(store: StoreReader, request: HistoryRequest, passId: string): HistoryRead {
  const { since, until, limit } = request;
  const range = { since, until, limit: EVERYTHING };
  const { shown: removals, cut } = cutTo(limit, store.removals({ ...request, limit: limit + 1 }));
  const passes = store.passes(range).filter((pass) => pass.id === passId);
  const events = store.events(range).filter((event) => event.passId === passId);
  return { report: { ...NOTHING, passes, removals, events: events.toReversed() }, cut };
}

const justAfter = (at: Instant): Instant => instant(at + 1n);
