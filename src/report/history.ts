/** Document `History` and the output of `crigc history`: passes with their removals, warnings, images that came back. */

import type { History, PassRow, Removal } from "../model/history.ts";
import type { Subject } from "../model/reason.ts";
import { since, toMs, toRfc3339 } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { document, eventJson, jsonOf } from "./document.ts";
import { endWords, eventWords, passFigureWords, passTitle } from "./pass-words.ts";
import { IMAGE_TRIGGERS, imageTrigger, POD_REMOVALS, podReasons, withSignal } from "./reasons.ts";
import { clean, column, type Columns, OPTIONAL, Printer, RIGHT, type Screen } from "./terminal.ts";
import {
  bytesCell,
  changeCell,
  elapsed,
  humanBytes,
  humanDuration,
  humanMs,
  instantOf,
  kindTitle,
  secondOf,
  shortId,
} from "./words.ts";

export type HistoryDocument = ReturnType<typeof historyDocument>;

export const historyDocument = ({ passes, removals, events, returned }: History) =>
  document("History", {
    passes: passes.map(passRowJson),
    removals: removals.map(removalJson),
    events: events.map(eventJson),
    returned: returned.map(({ subject, at, ...rest }) => ({
      id: subject,
      ...jsonOf(rest),
      returnedAt: toRfc3339(at),
      afterMs: toMs(since(at, rest.removedAt)),
    })),
  });

export type PassRowJson = HistoryDocument["passes"][number];
export type RemovalJson = ReturnType<typeof removalJson>;
type ReturnedJson = HistoryDocument["returned"][number];

export const removalJson = ({ subject, ...rest }: Removal) => ({ id: subject, ...jsonOf(rest) });

const passRowJson = ({ id, kind, ...row }: PassRow) => ({
  passId: id,
  passKind: kind,
  ...jsonOf(row),
  imagesEndText:
    row.imagesEnd === null
      ? null
      : endWords(row.imagesEnd, row.purpose, row.removed + row.failed > 0),
  containersEndText: row.containersEnd === null ? null : endWords(row.containersEnd),
});

export function historyTable(history: HistoryDocument, screen: Screen): string {
  const printer = new Printer(screen);
  printHistory(printer, history);
  return printer.text();
}

export function printHistory(
  printer: Printer,
  { passes, removals, events, returned }: HistoryDocument,
): void {
  if (passes.length + removals.length + events.length === 0)
    return printer.line("No records found.");
  const byPass = Map.groupBy(removals, ({ passId }) => passId);
  const known = new Set(passes.map(({ passId }) => passId));
  // Removals whose pass was not selected.
  const strays = removals.filter(({ passId }) => !known.has(passId));
  const entries = [
    ...passes.map((pass) => ({
      at: pass.startedAt,
      print: () => printPass(printer, pass, byPass.get(pass.passId) ?? []),
    })),
    ...events.map((event) => ({
      at: event.at,
      print: () => printer.say(`${secondOf(event.at)}  warning ${eventWords(event)}`, "yellow"),
    })),
    ...strays.slice(0, 1).map(({ at }) => ({ at, print: () => printRemovals(printer, strays) })),
  ].map((entry) => ({ ...entry, at: instantOf(entry.at) }));
  for (const { print } of entries.toSorted((one, other) => compared(one.at, other.at))) print();
  printer.gap();
  if (returned.length > 0) {
    printer.line("Images that came back after their removal:");
    printer.table(RETURNED_COLUMNS, returned, { indent: "  " });
    printer.gap();
  }
}

function printPass(printer: Printer, pass: PassRowJson, rows: readonly RemovalJson[]): void {
  const by = pass.requestedBy === null ? "" : ` (${clean(pass.requestedBy)})`;
  const head = `${secondOf(pass.startedAt)}  ${passTitle(pass.passKind)}${by}${pass.dryRun ? " (dry run)" : ""}, ${pass.passId}: ${passRowWords(pass)}`;
  printer.say(head, pass.error === null && pass.failed === 0 ? "bold" : "red");
  if (rows.length === 0) return;
  printRemovals(printer, rows);
  printer.gap();
}

/** `3 removed, 1.2 GiB freed, target reached, in 4s`. */
function passRowWords({ imagesEndText, containersEndText, ...pass }: PassRowJson): string {
  const words = passFigureWords({ ...pass, ends: [containersEndText ?? "", imagesEndText ?? ""] });
  const { startedAt, endedAt } = pass;
  if (pass.error !== null) return words;
  return endedAt === null
    ? `${words}, interrupted or still running`
    : `${words}, in ${humanDuration(elapsed(endedAt, startedAt))}`;
}

export const removalKinds = ["image", "container", "sandbox", "pod-logs", "log-link"] as const;
export const isRemovalKind = (kind: string): kind is Subject["kind"] =>
  removalKinds.some((it) => it === kind);
/** Why anything is removed. */
export const removalCodes: readonly string[] = [
  ...Object.keys(IMAGE_TRIGGERS),
  ...Object.keys(POD_REMOVALS),
];

/** Why, by its codes in the history; an unknown one, of a later version, is shown as it is. */
export const removalTitle = ({
  kind,
  reason,
  signal,
}: Pick<Removal, "reason" | "signal"> & { readonly kind: string }): string => {
  const { title } = kind === "image" ? imageTrigger : podReasons;
  return withSignal(clean(title(reason)), signal);
};

/** What was removed, as the history names it. */
export const removalName = ({ kind, id, names }: RemovalJson): string =>
  names[0] === undefined && !kind.endsWith("s") ? shortId(id) : clean(names[0] ?? id);

const REMOVAL_COLUMNS: Columns<RemovalJson> = [
  column("KIND", ({ kind }) => kindTitle(kind)),
  column("NAME", removalName),
  // Estimated by layers, next to what was freed.
  column("ESTIMATE", ({ estimateBytes }) => bytesCell(estimateBytes), OPTIONAL),
  column("FREED", ({ measuredBytes }) => changeCell(measuredBytes), RIGHT),
  column("REPORTED", ({ reportedBytes }) => bytesCell(reportedBytes), RIGHT),
  column("WHY", removalTitle),
  column(
    "RESULT",
    ({ result, message }) => kindTitle(result) + (message === null ? "" : `: ${clean(message)}`),
  ),
];

const printRemovals = (printer: Printer, items: readonly RemovalJson[]): void =>
  printer.table(REMOVAL_COLUMNS, items, { indent: "  " });

/** Images that were removed and pulled again. */
const RETURNED_COLUMNS: Columns<ReturnedJson> = [
  column("CAME BACK", ({ returnedAt }) => secondOf(returnedAt)),
  column("AFTER", ({ afterMs }) => humanMs(afterMs), RIGHT),
  column("IMAGE", ({ names, id }) => clean(names[0] ?? shortId(id))),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("REMOVED FOR", (image) => removalTitle({ ...image, kind: "image" })),
];
