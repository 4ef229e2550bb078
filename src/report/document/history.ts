/** Document `History`: passes with their removals and freed bytes, and warning events. */

import type { PassRow, Regret, Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import { since, toMs } from "../../model/time.ts";
import { containerEndWords, endWords } from "../pass-words.ts";
import { stepJson } from "./gc.ts";
import { document, type JsonObject, picked, timeOf } from "./json.ts";
import { eventJson } from "./node.ts";

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
    removals: report.removals.map(removalRowJson),
    events: report.events.map(eventJson),
    regrets: report.regrets.map(regretJson),
  });

const regretJson = ({ subject, removedAt, at, passId, names, ...rest }: Regret): JsonObject => ({
  passId,
  id: subject,
  names,
  removedAt: timeOf(removedAt),
  returnedAt: timeOf(at),
  afterMs: toMs(since(at, removedAt)),
  ...rest,
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

const removalRowJson = ({ passId, kind, subject, took, ...rest }: Removal): JsonObject => ({
  passId,
  kind,
  id: subject,
  ...rest,
  at: timeOf(rest.at),
  tookMs: took === null ? null : toMs(took),
});
