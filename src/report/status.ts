/** Document `Status` and the output of `crigc status`: problems first, then disks, passes and configured values. */

import type { Thresholds } from "../model/limits.ts";
import type { Event, HoldState, LoopStatus, Pass } from "../model/pass.ts";
import type { PodSourceState } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { MeasuredFilesystem } from "../model/reports.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { type Duration, type Instant, seconds } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { printFigures } from "./disk-usage.ts";
import {
  document,
  eventJson,
  filesystemJson,
  type Json,
  type JsonObject,
  jsonOf,
  runtimeJson,
} from "./document.ts";
import { passHeadJson } from "./gc.ts";
import { eventWords, passSummary, passTitle } from "./pass-words.ts";
import { holdWords, imageBlock, podSourceWords } from "./reasons.ts";
import { clean, column, type Columns, present, Printer, RIGHT, type Screen } from "./terminal.ts";
import { elapsed, humanBytes, humanDuration, humanMs, plural } from "./words.ts";

export interface FilesystemStatus {
  readonly filesystem: MeasuredFilesystem;
  /** `null`: image collection has no threshold for it. */
  readonly thresholds: Thresholds | null;
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

/** A configured value by its configuration-file name. */
export interface ValueStatus {
  readonly field: string;
  readonly value: Json;
  /** As in a flag, or what a missing default means. */
  readonly text: string;
  /** `default`, `file`, `flag`. */
  readonly source: string;
  /** Every place that sets it. */
  readonly from: readonly string[];
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
  readonly hold: HoldState;
  /** Remaining grace period after a boot; `null`: none. */
  readonly bootGrace: Duration | null;
  /** The containers for which image removal waits now; `null`: it does not wait. */
  readonly waiting: RemovalBlock | null;
  /** The pod source as of the last container pass; `null`: no pass yet. */
  readonly podSource: PodSourceState | null;
  readonly loops: readonly LoopStatus[];
  /** The last pass of each kind. */
  readonly lastPasses: readonly PassStatus[];
  readonly filesystems: readonly FilesystemStatus[];
  readonly underPressure: boolean;
  readonly pressure: readonly PressureStatus[];
  readonly images: { readonly count: number; readonly sizeBytes: bigint } | null;
  readonly deadContainers: number | null;
  /** The latest warnings, oldest first. */
  readonly events: readonly Event[];
  readonly values: readonly ValueStatus[];
}

export type PassStatus = ReturnType<typeof passStatus>;

/** What a status says of a pass. */
export const passStatus = (pass: Pass) => ({
  ...passHeadJson(pass),
  summary: passSummary(pass),
  error: pass.error,
  /** Whether a hold blocked it. */
  held: [pass.plan.images, pass.plan.containers].some((half) =>
    half?.blocks.some(({ kind }) => kind === "on-hold"),
  ),
});

export type StatusDocument = ReturnType<typeof statusDocument>;

export const statusDocument = (report: StatusReport) =>
  document("Status", {
    ...jsonOf(report, "version", "pid", "dryRun", "runtimeError", "ledgerError"),
    ...jsonOf(report, "underPressure", "deadContainers", "now", "startedAt"),
    ...jsonOf(report, "runtimeAnsweredAt", "bootGrace", "podSource", "loops", "images"),
    problems: problems(report),
    runtime: report.runtime && runtimeJson(report.runtime),
    hold: report.hold.kind === "none" ? null : jsonOf(report.hold, "until", "since", "reason"),
    waiting: report.waiting && imageBlock.json(report.waiting),
    lastPasses: report.lastPasses,
    filesystems: report.filesystems.map(({ filesystem, thresholds }) => ({
      ...filesystemJson(filesystem),
      ...jsonOf(filesystem, "measuredAt"),
      lowPercent: thresholds?.lowPercent ?? null,
      highPercent: thresholds?.highPercent ?? null,
    })),
    pressure: report.pressure.map(pressureJson),
    events: report.events.map(eventJson),
    values: valuesJson(report.values),
  });

const isOfInodes = ({ signal }: PressureStatus): boolean => signal.endsWith(".inodesFree");

/** Field names end in their unit: bytes, or inodes for inode signals. */
function pressureJson(it: PressureStatus): JsonObject {
  const unit = isOfInodes(it) ? "Inodes" : "Bytes";
  const amounts = { [`available${unit}`]: it.available, [`limit${unit}`]: it.limit };
  return { ...jsonOf(it, "signal", "mountpoint", "due"), ...amounts };
}

const EVENTS_SHOWN = 5;

export function statusTable(status: StatusDocument, screen: Screen): string {
  const { now } = status;
  const printer = new Printer(screen);
  printer.say(headWords(status), "bold");
  printer.gap();
  for (const problem of status.problems) printer.say(`${problem}.`, "red");
  printer.gap();
  for (const event of status.events.slice(-EVENTS_SHOWN))
    printer.say(`${ago(event.at, now)}: ${eventWords(event)}`, "yellow");
  printer.gap();
  for (const it of status.filesystems) {
    const { unmeasured, measuredAt } = it;
    const rest =
      unmeasured === undefined ? `, measured ${ago(measuredAt, now)}` : `: ${unmeasured}`;
    printFigures(printer, it, clean(rest));
    printer.gap();
  }
  printCounts(printer, status);
  printer.gap();
  printer.table(loopColumns(now), status.loops);
  printer.gap();
  for (const { passKind, endedAt, summary, held } of status.lastPasses) {
    // Its words say that a hold is in force.
    if (held && status.hold === null) continue;
    const title = capitalised(passTitle(passKind));
    printer.say(`${title} ${ago(endedAt, now)}${summary.slice(title.length)}`);
  }
  printer.gap();
  const changed = Object.entries(status.values).filter(([, { source }]) => source !== "default");
  if (changed.length > 0) printer.line("Settings that differ from the default (-o json has all):");
  printer.table(VALUE_COLUMNS, changed);
  return printer.text();
}

function headWords({ version, pid, now, startedAt, dryRun, runtime: it }: StatusDocument): string {
  const up = humanDuration(elapsed(now, startedAt));
  const runtime =
    it === null ? "runtime not connected yet" : clean(`${it.name} ${it.version} at ${it.endpoint}`);
  const dry = dryRun ? ", dry run: nothing is removed" : "";
  return `crigc ${clean(version)}, pid ${pid}, up ${up}${dry}; ${runtime}`;
}

/** Everything that keeps the agent from collecting, or pods from starting. */
function problems(report: StatusReport): readonly string[] {
  const { runtimeError, ledgerError, podSource, bootGrace, hold } = report;
  return present([
    runtimeError !== null && `The runtime does not answer: ${clean(runtimeError)}`,
    ledgerError !== null && `The ledger is not on disk: ${clean(ledgerError)}`,
    podSource?.kind === "not-ready" && capitalised(podSourceWords(podSource)),
    hold.kind === "held" && `On hold ${holdWords(hold)}`,
    bootGrace !== null &&
      `Grace period after a boot: nothing is removed for another ${humanDuration(bootGrace)}`,
    report.waiting !== null && `Image removal waits: ${imageBlock.text(report.waiting)}`,
    ...report.pressure.map(pressureWords),
    report.pressure.length === 0 &&
      report.underPressure &&
      "Disk pressure has ended; it is still reported during the transition period",
  ]);
}

export function pressureWords(it: PressureStatus): string {
  const shown = (amount: bigint): string =>
    isOfInodes(it) ? plural(amount, "inode") : humanBytes(amount);
  const grace = it.due ? "" : ", within its grace period";
  return `Disk pressure: ${it.signal} at ${clean(it.mountpoint)} is ${shown(it.available)}, below ${shown(it.limit)}${grace}`;
}

function printCounts(printer: Printer, { images, deadContainers }: StatusDocument): void {
  const dead = deadContainers === null ? "" : `; ${plural(deadContainers, "dead container")}`;
  if (images !== null)
    printer.line(
      `${plural(images.count, "image")}, ${humanBytes(images.sizeBytes)} as reported${dead}`,
    );
}

type LoopJson = StatusDocument["loops"][number];

const loopColumns = (now: string): Columns<LoopJson> => [
  column("LOOP", ({ name }) => name),
  column("EVERY", ({ periodMs }) => humanMs(periodMs), RIGHT),
  column("LAST", (loop) => (loop.lastEndedAt === null ? "-" : ago(loop.lastEndedAt, now)), RIGHT),
  column("NEXT", (loop) => nextRun(loop, now), RIGHT),
  column("RESULT", loopResult),
];

function nextRun(loop: LoopJson, now: string): string {
  if (!loop.enabled) return "-";
  if (loop.nextAt === null) return loop.lastStartedAt === null ? "-" : "running";
  const span = elapsed(loop.nextAt, now);
  return span < SECOND ? "now" : `in ${humanDuration(span)}`;
}

function loopResult(loop: LoopJson): string {
  if (!loop.enabled) return "disabled";
  if (loop.lastError !== null)
    return `failed ${plural(loop.consecutiveFailures, "time")}: ${clean(loop.lastError)}`;
  if (loop.lastEndedAt !== null) return "ok";
  return loop.lastStartedAt === null ? "not run yet" : "-";
}

export type ValuesJson = ReturnType<typeof valuesJson>;

export const valuesJson = (values: readonly ValueStatus[]) =>
  Object.fromEntries(values.map(({ field, ...value }) => [field, value]));

export const VALUE_COLUMNS: Columns<[field: string, value: ValuesJson[string]]> = [
  column("FIELD", ([field]) => field),
  column("VALUE", ([, { text }]) => clean(text)),
  column("SOURCE", ([, { source, from }]) => clean([source, from.join(", ")].join(" ").trimEnd())),
];

const SECOND = seconds(1);

function ago(at: string, now: string): string {
  const span = elapsed(now, at);
  return span < SECOND ? "just now" : `${humanDuration(span)} ago`;
}
