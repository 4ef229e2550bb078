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

export function readHistory(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { kinds, reasons, results, text, passId } = request;
  if (request.regrets === true) return ofRegrets(store, request);
  if (passId !== undefined) return ofPass(store, request, passId);
  const chosen = [kinds, reasons, results, text].some((it) => it !== undefined);
  return chosen ? byRemovals(store, request) : byPasses(store, request);
}

function byPasses(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { since, until, limit } = request;
  const found = store.passes({ since, until, limit: limit + 1 });
  const cut = found.length > limit;
  const passes = found.slice(0, limit).toReversed();
  // Records before the first shown pass belong to passes that are not shown.
  const from = cut ? (passes[0]?.startedAt ?? since) : since;
  const range = { since: from, until, limit: EVERYTHING };
  const removals = store.removals(range).toReversed();
  const events = store.events(range).toReversed();
  const regrets = store.regrets(range).toReversed();
  return { report: { passes, removals, events, regrets }, cut };
}

function ofRegrets(store: StoreReader, { since, until, limit }: HistoryRequest): HistoryRead {
  const found = store.regrets({ since, until, limit: limit + 1 });
  const regrets = found.slice(0, limit).toReversed();
  return { report: { passes: [], removals: [], events: [], regrets }, cut: found.length > limit };
}

function byRemovals(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { limit } = request;
  const found = store.removals({ ...request, limit: limit + 1 });
  const removals = found.slice(0, limit).toReversed();
  const passes = passesOf(store, removals);
  return { report: { passes, removals, events: [], regrets: [] }, cut: found.length > limit };
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
  const found = store.removals({ ...request, limit: limit + 1 });
  return {
    report: {
      passes: store.passes(range).filter((pass) => pass.id === passId),
      removals: found.slice(0, limit).toReversed(),
      events: store
        .events(range)
        .filter((event) => event.passId === passId)
        .toReversed(),
      regrets: [],
    },
    cut: found.length > limit,
  };
}

const justAfter = (at: Instant): Instant => instant(at + 1n);
