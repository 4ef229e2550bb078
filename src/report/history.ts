/** Document `History` and the output of `crigc history`: passes with their removals, warnings, images that came back. */

import {
  isGone,
  type PassRow,
  type Regret,
  type RegretFigures,
  type Removal,
} from "../model/history.ts";
import type { Event } from "../model/pass.ts";
import { since, toMs } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { bytesCell, counted, humanBytes, humanDuration, secondOf } from "./bytes.ts";
import { document, eventJson, type JsonObject, picked, timeOf } from "./document.ts";
import { stepJson } from "./gc.ts";
import { removalName, shortId } from "./names.ts";
import { containerEndWords, endWords, eventWords, passTitle } from "./pass-words.ts";
import {
  column,
  type ItemColumn,
  itemLines,
  NAME,
  painted,
  RIGHT,
  text,
  wrapped,
} from "./table.ts";
import { clean, paint, present, type Screen } from "./terminal.ts";

export interface HistoryReport {
  /** The oldest first. */
  readonly passes: readonly PassRow[];
  readonly removals: readonly Removal[];
  readonly events: readonly Event[];
  /** Images that came back after they were removed. */
  readonly regrets: readonly Regret[];
  /** Whether passes with nothing to do were left out. */
  readonly hidesIdle?: boolean;
}

export const historyDocument = (report: HistoryReport): JsonObject =>
  document("History", {
    passes: report.passes.map(passRowJson),
    removals: report.removals.map(({ subject, took, ...rest }) => ({
      id: subject,
      ...rest,
      at: timeOf(rest.at),
      tookMs: took === null ? null : toMs(took),
    })),
    events: report.events.map(eventJson),
    regrets: report.regrets.map(({ subject, removedAt, at, ...rest }) => ({
      id: subject,
      ...rest,
      removedAt: timeOf(removedAt),
      returnedAt: timeOf(at),
      afterMs: toMs(since(at, removedAt)),
    })),
  });

const passRowJson = (row: PassRow): JsonObject => ({
  passId: row.id,
  passKind: row.kind,
  ...picked(row, "purpose", "signals"),
  startedAt: timeOf(row.startedAt),
  endedAt: timeOf(row.endedAt),
  ...picked(row, "dryRun", "error", "imagesEnd"),
  imagesEndText: row.imagesEnd === null ? null : endWords(row.imagesEnd, row.purpose),
  containersEnd: row.containersEnd,
  containersEndText: row.containersEnd === null ? null : containerEndWords(row.containersEnd),
  ...picked(row, "removed", "failed", "wantedBytes", "reportedFreedBytes", "measuredFreedBytes"),
  ...picked(row, "availableBeforeBytes", "availableAfterBytes", "capacityBytes"),
  steps: row.steps.map(stepJson),
});

/** `freed`: passes are already in order, events follow; otherwise both are sorted by time. */
export type HistoryOrder = "time" | "newest" | "freed";

type Shown = Omit<HistoryReport, "regrets">;

export function historyTable(report: Shown, screen: Screen, order: HistoryOrder = "time"): string {
  const { passes, removals, events, hidesIdle = false } = report;
  if (passes.length + removals.length + events.length === 0 && !hidesIdle)
    return "No records found.\n";
  const byPass = Map.groupBy(removals, ({ passId }) => passId);
  const known = new Set(passes.map(({ id }) => id));
  // Removals whose pass was not selected.
  const strays = removals.filter(({ passId }) => !known.has(passId));
  const entries = [
    ...passes.map((pass) => ({
      at: pass.startedAt,
      lines: passLines(pass, byPass.get(pass.id) ?? [], screen),
    })),
    ...events.map((event) => ({
      at: event.at,
      lines: painted(screen, "yellow", `${secondOf(event.at)}  warning ${eventWords(event)}`),
    })),
    ...strays.slice(0, 1).map(({ at }) => ({ at, lines: removalLines(strays, screen) })),
  ];
  if (order !== "freed") entries.sort((one, other) => compared(one.at, other.at));
  if (order === "newest") entries.reverse();
  const idle = "Passes with nothing to do are not listed; list them with --all.";
  return text([
    ...entries.flatMap(({ lines }) => lines),
    "",
    ...(hidesIdle ? painted(screen, "dim", idle) : []),
  ]);
}

function passLines(pass: PassRow, rows: readonly Removal[], screen: Screen): readonly string[] {
  const head = `${secondOf(pass.startedAt)}  ${passTitle(pass.kind)}${pass.dryRun ? " (dry run)" : ""}, ${pass.id}: ${passRowWords(pass)}`;
  const [first = "", ...rest] = wrapped(head, screen);
  const colour = pass.error === null && pass.failed === 0 ? "bold" : "red";
  return [
    paint(screen, colour, first),
    ...rest.map((line) => `  ${line}`),
    ...(rows.length === 0 ? [] : [...removalLines(rows, screen), ""]),
  ];
}

/** `3 removed, 1.2 GiB freed, target reached, in 4s`. */
export function passRowWords(pass: PassRow): string {
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

const why = ({ reason, signal }: Pick<Removal, "reason" | "signal">): string =>
  signal === null ? reason : `${reason} ${signal}`;

const REMOVAL_COLUMNS: readonly ItemColumn<Removal>[] = [
  column("KIND", ({ kind }) => kind),
  column("NAME", removalName, NAME),
  // Estimated by layers, next to what was freed.
  column("ESTIMATE", ({ freesBytes }) => bytesCell(freesBytes), { ...RIGHT, optional: true }),
  column("FREED", ({ measuredBytes }) => bytesCell(measuredBytes), RIGHT),
  column("REPORTED", ({ reportedBytes }) => bytesCell(reportedBytes), RIGHT),
  column("WHY", why, { minimumWidth: 8 }),
  column(
    "RESULT",
    ({ result, message }) => (message === null ? result : `${result}: ${clean(message)}`),
    { minimumWidth: 8 },
  ),
];

const removalLines = (items: readonly Removal[], screen: Screen): readonly string[] =>
  itemLines(
    {
      columns: REMOVAL_COLUMNS,
      items,
      groupOf: ({ kind, reason, result }) => `${kind} ${result}: ${reason}`,
      matters: (row) => !isGone(row),
    },
    { ...screen, width: screen.width === null ? null : screen.width - 2 },
  ).map((line) => `  ${line}`);

const REGRET_COLUMNS: readonly ItemColumn<Regret>[] = [
  column("CAME BACK", ({ at }) => secondOf(at)),
  column("AFTER", ({ at, removedAt }) => humanDuration(since(at, removedAt)), RIGHT),
  column("IMAGE", ({ names, subject }) => clean(names[0] ?? shortId(subject)), NAME),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("REMOVED FOR", why, { minimumWidth: 8 }),
];

/** The output of `crigc history --regrets`. */
export const regretsTable = (items: readonly Regret[], screen: Screen): string =>
  items.length === 0
    ? "No removed image came back in this selection.\n"
    : text(itemLines({ columns: REGRET_COLUMNS, items }, screen));

/** `214 images removed, 3 came back (1.2 GiB), the first after 6h`. */
export function regretWords({ removedImages, returned, soonest }: RegretFigures): string {
  const count = returned.reduce((sum, one) => sum + one.count, 0);
  const sizeBytes = returned.reduce((sum, one) => sum + one.sizeBytes, 0n);
  const back =
    soonest === null
      ? "none came back"
      : `${count} came back (${humanBytes(sizeBytes)}), the first after ${humanDuration(soonest)}`;
  return `${counted(removedImages, "image")} removed, ${back}`;
}
