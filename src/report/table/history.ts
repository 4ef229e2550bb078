/** The output of `crigc history`: one line per pass with its removals below, and warnings in between. */

import { isGone, type PassRow, type Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import { type Instant, since } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import { counted, humanBytes, humanDuration, secondOf } from "../bytes.ts";
import type { HistoryReport } from "../document/history.ts";
import { removalName } from "../names.ts";
import { containerEndWords, endWords, eventWords, passTitle } from "../pass-words.ts";
import { clean, paint, present, type Screen } from "../terminal.ts";
import { hiddenLines, shortened } from "./groups.ts";
import { text } from "./plan.ts";
import { type Column, painted, tableLines, wrapped } from "./table.ts";

type Shown = Omit<HistoryReport, "regrets">;

const COLUMNS: readonly Column[] = [
  { title: "KIND" },
  { title: "NAME", minimumWidth: 16, cut: "middle" },
  // Estimated by layers, next to what was freed.
  { title: "ESTIMATE", align: "right", optional: true },
  { title: "FREED", align: "right" },
  { title: "REPORTED", align: "right" },
  { title: "WHY", minimumWidth: 8 },
  { title: "RESULT", minimumWidth: 8 },
];

/** `freed`: passes are already in order, events follow; otherwise both are sorted by time. */
export type HistoryOrder = "time" | "newest" | "freed";

export function historyTable(report: Shown, screen: Screen, order: HistoryOrder = "time"): string {
  const isEmpty = report.passes.length + report.removals.length + report.events.length === 0;
  if (isEmpty && report.hidesIdle !== true) return "No records found.\n";
  const known = new Set(report.passes.map((pass) => pass.id));
  const strays = report.removals.filter((row) => !known.has(row.passId));
  const entries = [
    ...report.passes.map((pass) => ({
      at: pass.startedAt,
      lines: passLines(pass, removalsOf(report, pass), screen),
    })),
    ...report.events.map((event) => ({ at: event.at, lines: eventLines(event, screen) })),
    ...strayEntries(strays, screen),
  ];
  if (order !== "freed") entries.sort((one, other) => compared(one.at, other.at));
  if (order === "newest") entries.reverse();
  return text([
    ...entries.flatMap((entry) => entry.lines),
    "",
    ...(report.hidesIdle === true
      ? wrapped("Passes with nothing to do are not listed; list them with --all.", screen).map(
          (line) => paint(screen, "dim", line),
        )
      : []),
  ]);
}

const removalsOf = (report: Shown, pass: PassRow): readonly Removal[] =>
  report.removals.filter((row) => row.passId === pass.id);

function strayEntries(
  rows: readonly Removal[],
  screen: Screen,
): readonly { readonly at: Instant; readonly lines: readonly string[] }[] {
  const [first] = rows;
  if (first === undefined) return [];
  return [{ at: first.at, lines: removalLines(rows, screen) }];
}

function passLines(pass: PassRow, rows: readonly Removal[], screen: Screen): readonly string[] {
  const head = `${secondOf(pass.startedAt)}  ${passTitle(pass.kind)}${pass.dryRun ? " (dry run)" : ""}, ${pass.id}: ${resultOf(pass)}`;
  const [first = "", ...rest] = wrapped(head, screen);
  const colour = pass.error === null && pass.failed === 0 ? "bold" : "red";
  return [
    paint(screen, colour, first),
    ...rest.map((line) => `  ${line}`),
    ...removalLines(rows, screen),
    ...(rows.length === 0 ? [] : [""]),
  ];
}

function resultOf(pass: PassRow): string {
  const { removed, failed, error, imagesEnd, containersEnd, endedAt } = pass;
  const done = [removed > 0 && `${removed} removed`, removed > 0 && freed(pass)];
  if (error !== null) return present([...done, `failed: ${clean(error)}`]).join(", ");
  const ends = [
    imagesEnd !== null && endWords(imagesEnd, pass.purpose),
    containersEnd !== null &&
      (imagesEnd === null || containersEnd !== "done") &&
      containerEndWords(containersEnd),
  ];
  const failures = failed > 0 && `${counted(failed, "removal")} failed`;
  const took =
    endedAt === null
      ? "interrupted or still running"
      : `in ${humanDuration(since(endedAt, pass.startedAt))}`;
  // Both halves may have ended for the same reason.
  return present([...done, failures, ...new Set(ends), took]).join(", ");
}

function freed({ measuredFreedBytes: measured, reportedFreedBytes: reported }: PassRow) {
  if (measured !== null && measured > 0n) return `${humanBytes(measured)} freed`;
  if (reported === null || reported <= 0n) return false;
  return measured === null
    ? `${humanBytes(reported)} freed as reported`
    : `0 B freed (${humanBytes(reported)} reported)`;
}

function removalLines(rows: readonly Removal[], screen: Screen): readonly string[] {
  if (rows.length === 0) return [];
  const { shown, hidden } = shortened(rows, screen, (row) => !isGone(row));
  return [
    ...tableLines(COLUMNS, shown.map(removalRow), indented(screen)),
    ...hiddenLines(hidden, ({ kind, reason, result }) => `${kind} ${result}: ${reason}`, screen),
  ].map((line) => `  ${line}`);
}

const indented = (screen: Screen): Screen => ({
  ...screen,
  width: screen.width === null ? null : screen.width - 2,
});

const removalRow = (row: Removal): readonly string[] => [
  row.kind,
  removalName(row),
  ...[row.freesBytes, row.measuredBytes, row.reportedBytes].map((bytes) =>
    bytes === null ? "-" : humanBytes(bytes),
  ),
  row.signal === null ? row.reason : `${row.reason} ${row.signal}`,
  row.message === null ? row.result : `${row.result}: ${clean(row.message)}`,
];

const eventLines = (event: Event, screen: Screen): readonly string[] =>
  painted(screen, "yellow", `${secondOf(event.at)}  warning ${eventWords(event)}`);
