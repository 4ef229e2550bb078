/** `crigc history`: what was removed, when, why, and what it freed. */

import { parseDuration } from "../../config/units.ts";
import { usageError } from "../../model/errors.ts";
import { type PassRow, type Removal, removalResults } from "../../model/history.ts";
import { fromRfc3339, hours, type Instant, instant } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import {
  historyDocument,
  type HistoryOrder,
  type HistoryReport,
  historyTable,
  isRemovalKind,
  removalCodes,
  removalKinds,
} from "../../report/history.ts";
import type { RemovalQuery, StateReader } from "../../state/reader.ts";
import { command, type Invocation, LIST, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { ALL_OPTION, LIST_OPTIONS, print, sortOption } from "../output.ts";
import { numberUpTo, parsed, type ValueType } from "../values.ts";

const ORDERS: readonly HistoryOrder[] = ["time", "newest", "freed"];
const LIMIT_DEFAULT = 50;
/** More than the history keeps of one kind. */
export const EVERYTHING = 100_000;
/** No pass takes longer, so a removal's pass began at most this long before it. */
const PASS_LONGEST = hours(24);

const QUERY_OPTIONS = [
  option("since TIME", "start: 2026-01-15T12:00:00Z, 2026-01-15 (UTC) or 36h (ago)"),
  option("until TIME", "end: a time, a date or an age"),
  option("kind KIND", "image, container, sandbox, pod-logs or log-link; repeatable", {
    choices: removalKinds,
  }),
  option("reason CODE", "code of a reason or trigger, such as pod-gone; repeatable", {
    choices: [...removalCodes, "periodic"],
  }),
  option("result RESULT", "removed, already-gone, ghost, skipped or failed; repeatable", {
    choices: removalResults,
  }),
  option("image TEXT", "image ID, tag or digest that contains TEXT"),
  option("pass ID", "show only this pass"),
  option("limit N", `newest N passes (removals, if filtered) [${LIMIT_DEFAULT}]; short: -n`, {
    short: "n",
  }),
];

export const history = command({
  name: "history",
  summary: "show what was removed, when, why, and what it freed",
  doc: "Lists passes, oldest first; tables need --all for those with nothing to do. A filter lists only matching removals. -q and -o name print passes, or removals if filtered. Needs no agent or runtime. Keeps the newest 16 to 32 MiB of records.",
  options: [...QUERY_OPTIONS, ...LIST_OPTIONS, sortOption(ORDERS), ALL_OPTION],
  formats: LIST,
  run: async (context) => {
    const request = historyRequest(context, context.open.now());
    const store = context.open.state(context.config);
    // It has been said why; an empty answer would say that nothing was removed.
    if (store.failure !== null) return exit.internal;
    const { report, cut } = readHistory(store, request);
    if (cut) context.note(`only the newest ${request.limit} are shown; --limit shows more`);
    const order = ORDERS.find((key) => key === textOf(context, "sort")) ?? "time";
    const sorted = sortedHistory(report, order);
    const isFiltered = sorted.events.length === 0 && filtersRemovals(request);
    await print(context, {
      document: historyDocument(sorted),
      table: (document, screen) => historyTable(document, screen, order),
      rows: ({ passes, removals }) =>
        isFiltered
          ? removals.map(({ id, names }) => ({ id, name: names[0] ?? id }))
          : passes.map(({ passId }) => ({ id: passId, name: passId })),
    });
    return exit.done;
  },
});

/** `limit`: passes, or removals if filtered. */
export interface HistoryRequest extends RemovalQuery {
  readonly limit: number;
  /** Leaves out passes with nothing to do. */
  readonly hidesIdle?: boolean;
}

/** Throws `ConfigError`. */
export function historyRequest(invocation: Invocation, now: Instant): HistoryRequest {
  const given = invocation.options;
  const last = (name: string): string | undefined => given.get(name)?.at(-1);
  const image = last("image");
  const kinds = given.get("kind")?.filter(isRemovalKind);
  if (image !== undefined && kinds !== undefined && !kinds.includes("image"))
    throw usageError("--image", image, "--image selects images, and --kind excludes them");
  const [since, until] = ["since", "until"].map((name) => {
    const text = last(name);
    return text === undefined ? undefined : parsed(timeBefore(now), text, `--${name}`);
  });
  if (since !== undefined && until !== undefined && since >= until)
    throw usageError("--until", last("until") ?? "", "it is not after --since");
  return {
    since,
    until,
    kinds: image === undefined ? kinds : ["image"],
    reasons: given.get("reason"),
    results: given.get("result")?.filter(isResult),
    text: image,
    passId: last("pass"),
    hidesIdle: invocation.output === "table" && !["all", "q"].some((it) => given.has(it)),
    limit: parsed(numberUpTo(EVERYTHING), last("limit") ?? `${LIMIT_DEFAULT}`, "--limit"),
  };
}

/** The parser has rejected other values. */
const isResult = (text: string): text is Removal["result"] =>
  removalResults.some((it) => it === text);

/** `2026-01-15T12:00:00Z`, `2026-01-15` (midnight UTC), or `2h` (before `now`). */
export const timeBefore = (now: Instant): ValueType<Instant> => ({
  what: "time",
  use: "2026-01-15T12:00:00Z, 2026-01-15 or 36h (ago)",
  read: (text) => {
    const time = fromRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
    if (time !== null) return time;
    const ago = parseDuration(text);
    return ago !== null && ago >= 0n ? instant(now - ago) : null;
  },
});

export interface HistoryRead {
  readonly report: HistoryReport;
  /** Whether there is more than the limit. */
  readonly cut: boolean;
}

const NOTHING: HistoryReport = { passes: [], removals: [], events: [], returned: [] };

/** Passes with their removals, or removals with their passes. */
export function readHistory(store: StateReader, request: HistoryRequest): HistoryRead {
  const { since, until, limit, passId } = request;
  const range = { since, until };
  if (passId === undefined && !filtersRemovals(request)) return recentPasses(store, request);
  const { shown, cut } = cutTo(limit, store.removals({ ...request, limit: limit + 1 }));
  if (passId === undefined) {
    const ids = new Set(shown.map(({ subject }) => subject));
    const returned = store.regrets(range).filter(({ subject }) => ids.has(subject));
    const passes = passesOf(store, shown);
    return {
      report: { ...NOTHING, passes, removals: shown, returned: returned.toReversed() },
      cut,
    };
  }
  const passes = store.passes(range).filter((pass) => pass.id === passId);
  const events = store.events(range).filter((event) => event.passId === passId);
  return { report: { ...NOTHING, passes, removals: shown, events: events.toReversed() }, cut };
}

const filtersRemovals = ({ kinds, reasons, results, text }: HistoryRequest): boolean =>
  [kinds, reasons, results, text].some((it) => it !== undefined);

/** The newest of what was found, the oldest first. */
const cutTo = <Row>(limit: number, found: readonly Row[]) => ({
  shown: found.slice(0, limit).toReversed(),
  cut: found.length > limit,
});

function recentPasses(store: StateReader, request: HistoryRequest): HistoryRead {
  const { since, until, limit, hidesIdle: hides = false } = request;
  const idle = hides ? false : undefined;
  const found = store.passes({ since, until, idle, limit: limit + 1 });
  const { shown: passes, cut } = cutTo(limit, found);
  // Records before the first shown pass belong to passes that are not shown.
  const from = cut ? (passes[0]?.startedAt ?? since) : since;
  const range = { since: from, until };
  const report = {
    passes,
    removals: store.removals(range).toReversed(),
    events: store.events(range).toReversed(),
    returned: store.regrets(range).toReversed(),
    hidesIdle: hides && store.passes({ since: from, until, idle: true, limit: 1 }).length > 0,
  };
  return { report, cut };
}

function passesOf(store: StateReader, removals: readonly Removal[]): readonly PassRow[] {
  const [first, last] = [removals[0], removals.at(-1)];
  if (first === undefined || last === undefined) return [];
  const ids = new Set(removals.map((removal) => removal.passId));
  const since = instant(first.at - PASS_LONGEST);
  const found = store.passes({ since, until: instant(last.at + 1n) });
  return found.filter((pass) => ids.has(pass.id)).toReversed();
}

/** Oldest first, as read, by default. */
function sortedHistory(report: HistoryReport, key: HistoryOrder): HistoryReport {
  const { passes, removals, events, returned } = report;
  if (key === "time") return report;
  if (key === "freed")
    return {
      ...report,
      passes: passes.toSorted((one, other) => compared(freedBy(other), freedBy(one))),
      removals: removals.toSorted((one, other) => compared(freedOf(other), freedOf(one))),
    };
  return {
    ...report,
    passes: passes.toReversed(),
    removals: removals.toReversed(),
    events: events.toReversed(),
    returned: returned.toReversed(),
  };
}

const freedBy = (pass: PassRow): bigint => pass.measuredFreedBytes ?? pass.reportedFreedBytes ?? 0n;
const freedOf = (row: Removal): bigint => row.measuredBytes ?? row.reportedBytes ?? 0n;
