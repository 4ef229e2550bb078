/** `crigc history`: what was removed, when, why, and what it freed. */

import type { PassRow } from "../../model/history.ts";
import { compared } from "../../model/values.ts";
import { historyDocument, type HistoryReport } from "../../report/document/history.ts";
import { type HistoryOrder, historyTable } from "../../report/table/history.ts";
import { regretsTable } from "../../report/table/regrets.ts";
import { ALL_OPTION, command, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { HISTORY_OPTIONS, type HistoryRequest, historyRequest } from "../read/history-request.ts";
import { LIST_OPTIONS, printListing, sortOption } from "../read/listing.ts";
import { readHistory } from "../read/read-history.ts";

const ORDERS: readonly HistoryOrder[] = ["time", "newest", "freed"];

export const history = command({
  name: "history",
  summary: "show what was removed, when, why, and what it freed",
  doc: "Lists passes with their removals (freed as estimated, measured and reported), and warnings between them, oldest first. A table leaves out passes with nothing to do, unless --all is given. With --kind, --reason, --result or --image it lists only matching removals, each under its pass. With --regrets it lists only images that came back after their removal, under the same ID or a name. With -q and -o name it prints passes, or removals if filtered. Reads only the state directory, even while an agent is running.",
  options: [...HISTORY_OPTIONS, ...LIST_OPTIONS, sortOption(ORDERS), ALL_OPTION],
  json: true,
  list: true,
  readOnly: true,
  run: async (context, invocation) => {
    const request = historyRequest(invocation, context.open.now());
    using store = context.open.state(context.config);
    // It has been said why; an empty answer would say that nothing was removed.
    if (store.failure !== null) return exit.internal;
    const { report, cut } = readHistory(store, request);
    if (cut)
      context.stderr(`crigc: only the newest ${request.limit} are shown; --limit shows more\n`);
    const order = ORDERS.find((key) => key === textOf(invocation, "sort")) ?? "time";
    const sorted = sortedHistory(report, order);
    const isFiltered = sorted.events.length === 0 && hasFilter(request);
    await printListing(context, invocation, {
      document: () => historyDocument(sorted),
      table: (screen) =>
        request.regrets === true
          ? regretsTable(sorted.regrets, screen)
          : historyTable(sorted, screen, order),
      rows: isFiltered
        ? [...sorted.removals, ...sorted.regrets].map(({ subject, names }) => ({
            id: subject,
            name: names[0] ?? subject,
          }))
        : sorted.passes.map(({ id }) => ({ id, name: id })),
    });
    return exit.done;
  },
});

const hasFilter = ({ kinds, reasons, results, text, regrets }: HistoryRequest): boolean =>
  regrets === true || [kinds, reasons, results, text].some((it) => it !== undefined);

/** Oldest first, as read, by default. */
function sortedHistory(report: HistoryReport, key: HistoryOrder): HistoryReport {
  if (key === "newest")
    return {
      ...report,
      passes: report.passes.toReversed(),
      removals: report.removals.toReversed(),
      events: report.events.toReversed(),
      regrets: report.regrets.toReversed(),
    };
  if (key !== "freed") return report;
  return {
    ...report,
    passes: report.passes.toSorted((one, other) => compared(freedBy(other), freedBy(one))),
    removals: report.removals.toSorted((one, other) => compared(freedOf(other), freedOf(one))),
  };
}

const freedBy = (pass: PassRow): bigint => pass.measuredFreedBytes ?? pass.reportedFreedBytes ?? 0n;
const freedOf = (row: HistoryReport["removals"][number]): bigint =>
  row.measuredBytes ?? row.reportedBytes ?? 0n;
