/** Document `Status`: the state of the running agent. */

import type { Forecast } from "../../model/disk-usage.ts";
import type { RegretFigures } from "../../model/history.ts";
import type { HoldState } from "../../model/hold.ts";
import type { Thresholds } from "../../model/limits.ts";
import type { Event, LoopStatus, Pass } from "../../model/pass.ts";
import type { PodSourceState } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { MeasuredFilesystem, RuntimeInfo } from "../../model/snapshot.ts";
import { type Duration, type Instant, toMs } from "../../model/time.ts";
import { imageBlock } from "../image-reasons.ts";
import { passSummary } from "../pass-summary.ts";
import { passHeadJson, stepJson } from "./gc.ts";
import { document, type Json, type JsonObject, picked, timeOf } from "./json.ts";
import { eventJson, filesystemJson, runtimeJson } from "./node.ts";

export interface FilesystemStatus {
  readonly filesystem: MeasuredFilesystem;
  /** `null`: image collection has no threshold for it. */
  readonly thresholds: Thresholds | null;
  /** `null`: too little data, no clear trend, or no history. */
  readonly forecast: Forecast | null;
}

export interface PressureStatus {
  readonly signal: string;
  readonly mountpoint: string;
  /** Bytes or inodes, depending on the signal. */
  readonly available: bigint;
  readonly limit: bigint;
  /** Whether its grace period is over. */
  readonly due: boolean;
}

/** A configured value by its configuration-file name, with its source. */
export interface ValueStatus {
  readonly field: string;
  readonly value: Json;
  readonly source: string;
}

export interface StatusReport {
  readonly version: string;
  readonly pid: number;
  readonly now: Instant;
  readonly startedAt: Instant;
  readonly dryRun: boolean;
  /** `null`: not known yet. */
  readonly runtime: RuntimeInfo | null;
  /** Why the runtime does not answer; `null`: it does. */
  readonly runtimeError: string | null;
  readonly runtimeAnsweredAt: Instant | null;
  /** Why the ledger is not kept on disk; `null`: it is. */
  readonly ledgerError: string | null;
  /** Device and inode of the agent's root directory; a container has its own. */
  readonly rootDirectoryId: string;
  /** How the configuration on disk differs from what is in force, or why it is invalid; `null`: it is in force. */
  readonly configurationError: string | null;
  readonly hold: HoldState;
  /** Remaining grace period after a boot; `null`: none. */
  readonly bootGrace: Duration | null;
  /** The containers for which image removal waits now; `null`: it does not wait. */
  readonly waiting: ImageBlock | null;
  /** The pod source as of the last container pass; `null`: no pass yet. */
  readonly podSource: PodSourceState | null;
  readonly loops: readonly LoopStatus[];
  /** The last pass of each kind. */
  readonly lastPasses: readonly Pass[];
  readonly filesystems: readonly FilesystemStatus[];
  readonly underPressure: boolean;
  readonly pressure: readonly PressureStatus[];
  readonly images: { readonly count: number; readonly sizeBytes: bigint } | null;
  readonly deadContainers: number | null;
  /** Removed images that came back; `null`: no history. */
  readonly regrets: RegretFigures | null;
  /** The latest warnings, oldest first. */
  readonly events: readonly Event[];
  readonly values: readonly ValueStatus[];
}

export const statusDocument = (report: StatusReport): JsonObject =>
  document("Status", {
    ...picked(report, "version", "pid", "rootDirectoryId"),
    now: timeOf(report.now),
    startedAt: timeOf(report.startedAt),
    dryRun: report.dryRun,
    runtime: report.runtime === null ? null : runtimeJson(report.runtime),
    runtimeError: report.runtimeError,
    runtimeAnsweredAt: timeOf(report.runtimeAnsweredAt),
    ...picked(report, "ledgerError", "configurationError"),
    hold: holdJson(report.hold),
    bootGraceMs: report.bootGrace === null ? null : toMs(report.bootGrace),
    waiting: report.waiting === null ? null : imageBlock.json(report.waiting),
    podSource: report.podSource === null ? null : { ...report.podSource },
    loops: report.loops.map(loopJson),
    lastPasses: report.lastPasses.map(passJson),
    filesystems: report.filesystems.map((it) => ({
      ...filesystemJson(it.filesystem),
      measuredAt: timeOf(it.filesystem.measuredAt),
      lowPercent: it.thresholds?.lowPercent ?? null,
      highPercent: it.thresholds?.highPercent ?? null,
      forecast: it.forecast === null ? null : forecastJson(it.forecast),
    })),
    underPressure: report.underPressure,
    pressure: report.pressure.map(pressureJson),
    images: report.images === null ? null : { ...report.images },
    deadContainers: report.deadContainers,
    regrets: report.regrets === null ? null : regretsJson(report.regrets),
    events: report.events.map(eventJson),
    values: Object.fromEntries(
      report.values.map((it) => [it.field, { value: it.value, source: it.source }]),
    ),
  });

const regretsJson = ({ removedImages, returned, soonest }: RegretFigures): JsonObject => ({
  removedImages,
  returned: returned.map((one) => ({ ...one })),
  soonestMs: soonest === null ? null : toMs(soonest),
});

const forecastJson = (it: Forecast): JsonObject => ({
  bytesPerHour: it.bytesPerHour,
  measuredOverMs: toMs(it.span),
  horizonMs: toMs(it.horizon),
  untilHighThresholdMs: it.untilHigh === null ? null : toMs(it.untilHigh),
  untilFullMs: it.untilFull === null ? null : toMs(it.untilFull),
});

const holdJson = (hold: HoldState): JsonObject | null =>
  hold.kind === "none"
    ? null
    : { until: timeOf(hold.until), since: timeOf(hold.since), reason: hold.reason };

const loopJson = (loop: LoopStatus): JsonObject => ({
  ...picked(loop, "name", "periodMs", "enabled"),
  lastStartedAt: timeOf(loop.lastStartedAt),
  lastEndedAt: timeOf(loop.lastEndedAt),
  nextAt: timeOf(loop.nextAt),
  ...picked(loop, "lastError", "consecutiveFailures"),
});

const passJson = (pass: Pass): JsonObject => ({
  ...passHeadJson(pass),
  error: pass.error,
  summary: passSummary(pass),
  steps: pass.steps.map(stepJson),
});

/** Field names end in their unit: bytes, or inodes for inode signals. */
function pressureJson(it: PressureStatus): JsonObject {
  const head = picked(it, "signal", "mountpoint", "due");
  return it.signal.endsWith(".inodesFree")
    ? { ...head, availableInodes: it.available, limitInodes: it.limit }
    : { ...head, availableBytes: it.available, limitBytes: it.limit };
}
