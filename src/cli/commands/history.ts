/** `crigc history`: what was removed, when, why, and what it freed. */

import { parseDuration } from "../../config/units.ts";
import { usageError } from "../../model/errors.ts";
import type { History, Removal } from "../../model/history.ts";
import { fromRfc3339, type Instant, instant } from "../../model/time.ts";
import {
  historyDocument,
  historyTable,
  isRemovalKind,
  removalCodes,
  removalKinds,
} from "../../report/history.ts";
import { parsed, valueOf, type ValueType } from "../args.ts";
import { command, type Invocation, LIST, option, print, textOf } from "../command.ts";
import { exit } from "../exit.ts";

const LIMIT_DEFAULT = 50;
/** More than the history keeps of one kind. */
const EVERYTHING = 100_000;

const QUERY_OPTIONS = [
  option("since TIME", "start: 2026-01-15T12:00:00Z, 2026-01-15 (UTC) or 36h (ago)"),
  option("kind KIND", "image, container, sandbox, pod-logs or log-link; repeatable", {
    choices: removalKinds,
  }),
  option("reason CODE", "code of a reason or trigger, such as pod-gone; repeatable", {
    choices: [...removalCodes, "periodic"],
  }),
  option("image TEXT", "image ID, tag or digest that contains TEXT", { completes: "images" }),
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
    const { report, cut } = readHistory(store.history(), request);
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

export interface HistoryRequest {
  readonly since?: Instant | undefined;
  /** Passes, or removals if filtered. */
  readonly limit: number;
  readonly kinds?: readonly Removal["kind"][] | undefined;
  /** Codes of reasons or triggers. */
  readonly reasons?: readonly string[] | undefined;
  /** Part of an ID or name, case-insensitive. */
  readonly text?: string | undefined;
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
    limit: parsed(COUNT, textOf(invocation, "n") ?? `${LIMIT_DEFAULT}`, "-n"),
  };
}

const COUNT: ValueType<number> = {
  what: "number",
  use: `1 to ${EVERYTHING}`,
  read: (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    return number >= 1 && number <= EVERYTHING ? number : null;
  },
};

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
  readonly report: History;
  /** Whether there is more than the limit. */
  readonly cut: boolean;
}

const filtersRemovals = ({ kinds, reasons, text }: HistoryRequest): boolean =>
  [kinds, reasons, text].some((it) => it !== undefined);

/** The newest passes with their removals, or the newest matching removals with their passes. */
export function readHistory(whole: History, request: HistoryRequest): HistoryRead {
  const { limit, since = instant(0n) } = request;
  const { passes, removals, events, returned } = whole;
  if (filtersRemovals(request)) {
    const found = removals.filter((row) => row.at >= since && isMatch(row, request));
    const shown = found.slice(-limit);
    const ids = new Set<string>(shown.flatMap(({ passId, subject }) => [passId, subject]));
    const report = {
      passes: passes.filter(({ id }) => ids.has(id)),
      removals: shown,
      events: [],
      returned: returned.filter(({ at, subject }) => at >= since && ids.has(subject)),
    };
    return { report, cut: found.length > limit };
  }
  const found = passes.filter(({ startedAt }) => startedAt >= since);
  const shown = found.slice(-limit);
  const cut = found.length > limit;
  // Records before the first shown pass belong to passes that are not shown.
  const first = (cut ? shown[0]?.startedAt : since) ?? since;
  const isShown = ({ at }: { readonly at: Instant }): boolean => at >= first;
  const report = {
    passes: shown,
    removals: removals.filter(isShown),
    events: events.filter(isShown),
    returned: returned.filter(isShown),
  };
  return { report, cut };
}

function isMatch(row: Removal, { kinds, reasons, text }: HistoryRequest): boolean {
  const part = text?.toLowerCase() ?? "";
  return (
    (kinds?.includes(row.kind) ?? true) &&
    (reasons?.some((code) => code === row.reason || code === row.trigger) ?? true) &&
    [row.subject, ...row.names].some((name) => name.toLowerCase().includes(part))
  );
}
