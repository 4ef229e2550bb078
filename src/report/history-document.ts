/** Document `History`: passes, what each removed and what that freed, and the warning events between them. */
import type { Event } from "../model/event.ts";
import type { ContainerOutcome, ImageEnd } from "../model/outcome.ts";
import type { PassKind } from "../model/pass.ts";
import type { Instant } from "../model/time.ts";
import { document, type JsonObject, timeOf } from "./json.ts";
import { containerEndWords, imageEndWords } from "./pass-words.ts";
import { eventJson } from "./snapshot-json.ts";

/** A pass as the history keeps it. */
export interface PassRow {
  readonly id: string;
  readonly kind: PassKind;
  readonly purpose: string;
  readonly signals: readonly string[];
  readonly startedAt: Instant;
  /** `null`: it did not come to its end (the program was killed). */
  readonly endedAt: Instant | null;
  readonly dryRun: boolean;
  readonly error: string | null;
  readonly imagesEnd: ImageEnd | null;
  readonly containersEnd: ContainerOutcome["end"] | null;
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
  readonly tookMs: number;
  readonly error: string | null;
}

/** A removal that was tried, as the history keeps it. */
export interface RemovalRow {
  readonly passId: string;
  readonly kind: "image" | "container" | "sandbox" | "pod-logs" | "log-link";
  /** The ID, or the entry of the log directory. */
  readonly subject: string;
  /** What it was called: tags and digests of an image, namespace, pod and name of a container. */
  readonly names: readonly string[];
  /** Code of the trigger of an image; "" for the rest. */
  readonly trigger: string;
  readonly signal: string | null;
  /** Code of why it was removed. */
  readonly reason: string;
  readonly result: string;
  readonly message: string | null;
  readonly reportedBytes: bigint | null;
  readonly measuredBytes: bigint | null;
  readonly settled: string | null;
  readonly at: Instant;
  readonly tookMs: number | null;
}

export interface HistoryReport {
  /** The oldest first. */
  readonly passes: readonly PassRow[];
  readonly removals: readonly RemovalRow[];
  readonly events: readonly Event[];
}

export const historyDocument = (report: HistoryReport): JsonObject =>
  document("History", {
    passes: report.passes.map(passRowJson),
    removals: report.removals.map(removalRowJson),
    events: report.events.map(eventJson),
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
  imagesEndText: row.imagesEnd === null ? null : imageEndWords(row.imagesEnd),
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
  steps: row.steps.map((step) => ({ name: step.name, tookMs: step.tookMs, error: step.error })),
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
  settled: row.settled,
  at: timeOf(row.at),
  tookMs: row.tookMs,
});
