/** `crigc history`: what was removed, when, why, and what it freed. */
import type { Instant } from "../model/time.ts";
import { duration, hours, instant, plus } from "../model/time.ts";
import { historyDocument, type HistoryReport } from "../report/history-document.ts";
import { historyTable } from "../report/history-table.ts";
import { printedJson } from "../report/json.ts";
import type { PassRow, Removal } from "../store/history-rows.ts";
import type { StoreReader } from "../store/open.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";
import { HISTORY_OPTIONS, type HistoryRequest, historyRequest } from "./history-request.ts";

export const history: Command = {
  name: "history",
  summary: "what was removed, when, why, and what it freed (reported and measured)",
  doc: "Passes with what each removed, and warnings between them, the oldest first. With --kind, --reason, --result or --image only such removals are shown, each under its pass. Reads the state directory alone, beside a running agent too.",
  operands: [],
  options: HISTORY_OPTIONS,
  json: true,
  run: async (context, invocation) => {
    const request = historyRequest(invocation, context.open.now());
    const store = context.open.state(context.config);
    try {
      const { report, cut } = readHistory(store, request);
      if (cut)
        context.stderr(`crigc: only the newest ${request.limit} are shown; --limit shows more\n`);
      context.stdout(
        invocation.output === "json"
          ? printedJson(historyDocument(report))
          : historyTable(report, context.screen),
      );
      return exit.done;
    } finally {
      store.close();
    }
  },
};

interface HistoryRead {
  readonly report: HistoryReport;
  /** There is more than the limit. */
  readonly cut: boolean;
}

/** All that the history keeps of one kind: bounds what passes bring with them. */
const EVERYTHING = 100_000;
/** No pass takes longer; a removal's pass began at most so long before it. */
const PASS_LONGEST = hours(24);

function readHistory(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { kinds, reasons, results, text, passId } = request;
  if (passId !== undefined) return ofPass(store, request, passId);
  const chosen = [kinds, reasons, results, text].some((it) => it !== undefined);
  return chosen ? byRemovals(store, request) : byPasses(store, request);
}

function byPasses(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { since, until, limit } = request;
  const found = store.passes({ since, until, limit: limit + 1 });
  const cut = found.length > limit;
  const passes = found.slice(0, limit).toReversed();
  // What came before the first pass that is shown belongs to passes that are not.
  const from = cut ? (passes[0]?.startedAt ?? since) : since;
  const range = { since: from, until, limit: EVERYTHING };
  const removals = store.removals(range).toReversed();
  return { report: { passes, removals, events: store.events(range).toReversed() }, cut };
}

function byRemovals(store: StoreReader, request: HistoryRequest): HistoryRead {
  const { limit } = request;
  const found = store.removals({ ...request, limit: limit + 1 });
  const removals = found.slice(0, limit).toReversed();
  const passes = passesOf(store, removals);
  return { report: { passes, removals, events: [] }, cut: found.length > limit };
}

function passesOf(store: StoreReader, removals: readonly Removal[]): readonly PassRow[] {
  const [first] = removals;
  const last = removals.at(-1);
  if (first === undefined || last === undefined) return [];
  const ids = new Set(removals.map((removal) => removal.passId));
  return store
    .passes({
      since: plus(first.at, duration(-PASS_LONGEST)),
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
    },
    cut: found.length > limit,
  };
}

const justAfter = (at: Instant): Instant => instant(at + 1n);
