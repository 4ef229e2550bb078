/** `crigc history`: what was removed, when, why, and what it freed. */

import { parseDuration } from "../../config/units.ts";
import { usageError } from "../../model/errors.ts";
import type { PassRow, Removal } from "../../model/history.ts";
import { fromRfc3339, hours, type Instant, instant } from "../../model/time.ts";
import {
  historyDocument,
  type HistoryReport,
  historyTable,
  isRemovalKind,
  removalCodes,
  removalKinds,
} from "../../report/history.ts";
import type { RemovalQuery, StateReader } from "../../state/reader.ts";
import { command, type Invocation, LIST, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../output.ts";
import { numberUpTo, parsed, valueOf, type ValueType } from "../values.ts";

const LIMIT_DEFAULT = 50;
/** More than the history keeps of one kind. */
export const EVERYTHING = 100_000;
/** No pass takes longer, so a removal's pass began at most this long before it. */
const PASS_LONGEST = hours(24);

const QUERY_OPTIONS = [
  option("since TIME", "start: 2026-01-15T12:00:00Z, 2026-01-15 (UTC) or 36h (ago)"),
  option("kind KIND", "image, container, sandbox, pod-logs or log-link; repeatable", {
    choices: removalKinds,
  }),
  option("reason CODE", "code of a reason or trigger, such as pod-gone; repeatable", {
    choices: [...removalCodes, "periodic"],
  }),
  option("image TEXT", "image ID, tag or digest that contains TEXT", { completes: "image" }),
  option("n N", `newest N passes, or removals if filtered [${LIMIT_DEFAULT}]`),
];

export const history = command({
  name: "history",
  summary: "show what was removed, when, why, and what it freed",
  doc: "Lists passes, oldest first. A filter lists only matching removals. -o name prints passes, or removals if filtered. Needs no agent or runtime. Keeps the newest 16 to 32 MiB of records.",
  options: QUERY_OPTIONS,
  formats: LIST,
  run: async (context) => {
    const request = historyRequest(context, context.open.now());
    const store = context.open.state(context.config);
    // It has been said why; an empty answer would say that nothing was removed.
    if (store.failure !== null) return exit.internal;
    const { report, cut } = readHistory(store, request);
    if (cut) context.note(`only the newest ${request.limit} are shown; -n shows more`);
    await print(context, {
      document: historyDocument(report),
      table: historyTable,
      rows: ({ passes, removals }) =>
        filtersRemovals(request)
          ? removals.map(({ id, names }) => ({ id, name: names[0] ?? id }))
          : passes.map(({ passId }) => ({ id: passId, name: passId })),
    });
    return exit.done;
  },
});

/** `limit`: passes, or removals if filtered. */
export interface HistoryRequest extends RemovalQuery {
  readonly limit: number;
}

/** Throws `ConfigError`. */
export function historyRequest(invocation: Invocation, now: Instant): HistoryRequest {
  const given = invocation.options;
  const image = textOf(invocation, "image") ?? undefined;
  const kinds = given.get("kind")?.filter(isRemovalKind);
  if (image !== undefined && kinds !== undefined && !kinds.includes("image"))
    throw usageError("--image", image, "--image selects images, and --kind excludes them");
  return {
    since: valueOf(invocation, "since", timeBefore(now)) ?? undefined,
    kinds: image === undefined ? kinds : ["image"],
    reasons: given.get("reason"),
    text: image,
    limit: parsed(numberUpTo(EVERYTHING), textOf(invocation, "n") ?? `${LIMIT_DEFAULT}`, "-n"),
  };
}

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

/** Passes with their removals, or removals with their passes. */
export const readHistory = (store: StateReader, request: HistoryRequest): HistoryRead =>
  filtersRemovals(request) ? selectedRemovals(store, request) : recentPasses(store, request);

const filtersRemovals = ({ kinds, reasons, text }: HistoryRequest): boolean =>
  [kinds, reasons, text].some((it) => it !== undefined);

/** The newest of what was found, the oldest first. */
const cutTo = <Row>(limit: number, found: readonly Row[]) => ({
  shown: found.slice(0, limit).toReversed(),
  cut: found.length > limit,
});

function selectedRemovals(store: StateReader, request: HistoryRequest): HistoryRead {
  const { since, limit } = request;
  const { shown, cut } = cutTo(limit, store.removals({ ...request, limit: limit + 1 }));
  const ids = new Set(shown.map(({ subject }) => subject));
  const returned = store.regrets({ since }).filter(({ subject }) => ids.has(subject));
  const passes = passesOf(store, shown);
  const report = { passes, removals: shown, events: [], returned: returned.toReversed() };
  return { report, cut };
}

function recentPasses(store: StateReader, { since, limit }: HistoryRequest): HistoryRead {
  const { shown: passes, cut } = cutTo(limit, store.passes({ since, limit: limit + 1 }));
  // Records before the first shown pass belong to passes that are not shown.
  const range = { since: cut ? (passes[0]?.startedAt ?? since) : since };
  const report = {
    passes,
    removals: store.removals(range).toReversed(),
    events: store.events(range).toReversed(),
    returned: store.regrets(range).toReversed(),
  };
  return { report, cut };
}

function passesOf(store: StateReader, removals: readonly Removal[]): readonly PassRow[] {
  const [first] = removals;
  if (first === undefined) return [];
  const ids = new Set(removals.map((removal) => removal.passId));
  const found = store.passes({ since: instant(first.at - PASS_LONGEST) });
  return found.filter((pass) => ids.has(pass.id)).toReversed();
}
