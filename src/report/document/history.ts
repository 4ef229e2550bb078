/** Document `History`: passes, what each removed and what that freed, and the warning events between them. */

import type { Event } from "../../model/pass.ts";
import type { Regret } from "../../model/regret.ts";
import { type Duration, type Instant, since } from "../../model/time.ts";
import { containerEndWords, endWords } from "../pass-words.ts";
import { document, type JsonObject, msOf, timeOf } from "./json.ts";
import { eventJson } from "./snapshot.ts";

/** A pass as the history keeps it. */
export interface PassRow {
  readonly id: string;
  /** A later version may have written words that this one does not know: they are shown as they stand. */
  readonly kind: string;
  readonly purpose: string;
  readonly signals: readonly string[];
  readonly startedAt: Instant;
  /** `null`: it did not come to its end (the program was killed). */
  readonly endedAt: Instant | null;
  readonly dryRun: boolean;
  readonly error: string | null;
  readonly imagesEnd: string | null;
  readonly containersEnd: string | null;
  readonly removed: number;
  readonly failed: number;
  readonly wantedBytes: bigint | null;
  readonly reportedFreedBytes: bigint | null;
  readonly measuredFreedBytes: bigint | null;
  readonly availableBeforeBytes: bigint | null;
  readonly availableAfterBytes: bigint | null;
  readonly capacityBytes: bigint | null;
  readonly steps: readonly StepRow[];
}

export interface StepRow {
  readonly name: string;
  readonly startedAt: Instant;
  readonly took: Duration;
  readonly error: string | null;
}

/** A removal that was tried, as the history keeps it. */
export interface RemovalRow {
  readonly passId: string;
  /** `image`, `container`, `sandbox`, `pod-logs` or `log-link`. */
  readonly kind: string;
  /** The ID, or the entry of the log directory. */
  readonly subject: string;
  /** What it was called: tags and digests of an image, namespace, pod and name of a container. */
  readonly names: readonly string[];
  /** What asked for it: a trigger of images, or the purpose of the pass for the rest. */
  readonly trigger: string;
  readonly signal: string | null;
  /** Code of why it was removed. */
  readonly reason: string;
  readonly result: string;
  readonly message: string | null;
  readonly reportedBytes: bigint | null;
  readonly measuredBytes: bigint | null;
  /** The chain of all layers of an image, and what they let expect of its removal. */
  readonly chainId: string | null;
  readonly freesBytes: bigint | null;
  readonly freesAtLeastBytes: bigint | null;
  readonly freesAtMostBytes: bigint | null;
  readonly settled: string | null;
  readonly at: Instant;
  readonly took: Duration | null;
}

export interface HistoryReport {
  /** The oldest first. */
  readonly passes: readonly PassRow[];
  readonly removals: readonly RemovalRow[];
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
  steps: row.steps.map((step) => ({
    name: step.name,
    startedAt: timeOf(step.startedAt),
    tookMs: msOf(step.took),
    error: step.error,
  })),
});

const removalRowJson = (row: RemovalRow): JsonObject => ({
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
