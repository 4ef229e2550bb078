/** Document `History`: passes with their removals and freed bytes, and warning events. */

import type { PassRow, Regret, Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import { since } from "../../model/time.ts";
import { containerEndWords, endWords } from "../pass-words.ts";
import { stepJson } from "./gc.ts";
import { document, type JsonObject, msOf, timeOf } from "./json.ts";
import { eventJson } from "./snapshot.ts";

export interface HistoryReport {
  /** The oldest first. */
  readonly passes: readonly PassRow[];
  readonly removals: readonly Removal[];
  readonly events: readonly Event[];
  /** Images that came back after they were removed. */
  readonly regrets: readonly Regret[];
}

export const historyDocument = (report: HistoryReport): JsonObject =>
  document("History", {
    passes: report.passes.map(passRowJson),
    removals: report.removals.map(removalRowJson),
    events: report.events.map(eventJson),
    regrets: report.regrets.map(regretJson),
  });

const regretJson = (regret: Regret): JsonObject => ({
  passId: regret.passId,
  id: regret.subject,
  names: regret.names,
  removedAt: timeOf(regret.removedAt),
  returnedAt: timeOf(regret.at),
  afterMs: msOf(since(regret.at, regret.removedAt)),
  returnedAs: regret.returnedAs,
  sizeBytes: regret.sizeBytes,
  trigger: regret.trigger,
  signal: regret.signal,
  reason: regret.reason,
});

const passRowJson = (row: PassRow): JsonObject => ({
  passId: row.id,
  passKind: row.kind,
  purpose: row.purpose,
  signals: row.signals,
  startedAt: timeOf(row.startedAt),
  endedAt: timeOf(row.endedAt),
  dryRun: row.dryRun,
  error: row.error,
  imagesEnd: row.imagesEnd,
  imagesEndText: row.imagesEnd === null ? null : endWords(row.imagesEnd, row.purpose),
  containersEnd: row.containersEnd,
  containersEndText: row.containersEnd === null ? null : containerEndWords(row.containersEnd),
  removed: row.removed,
  failed: row.failed,
  wantedBytes: row.wantedBytes,
  reportedFreedBytes: row.reportedFreedBytes,
  measuredFreedBytes: row.measuredFreedBytes,
  availableBeforeBytes: row.availableBeforeBytes,
  availableAfterBytes: row.availableAfterBytes,
  capacityBytes: row.capacityBytes,
  steps: row.steps.map(stepJson),
});

const removalRowJson = (row: Removal): JsonObject => ({
  passId: row.passId,
  kind: row.kind,
  id: row.subject,
  names: row.names,
  trigger: row.trigger,
  signal: row.signal,
  reason: row.reason,
  result: row.result,
  message: row.message,
  reportedBytes: row.reportedBytes,
  measuredBytes: row.measuredBytes,
  chainId: row.chainId,
  freesBytes: row.freesBytes,
  freesAtLeastBytes: row.freesAtLeastBytes,
  freesAtMostBytes: row.freesAtMostBytes,
  settled: row.settled,
  at: timeOf(row.at),
  tookMs: row.took === null ? null : msOf(row.took),
});
