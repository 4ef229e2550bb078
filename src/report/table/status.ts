/** The output of `crigc status`: problems first, then disks, passes and configured values. */

import type { HoldState } from "../../model/hold.ts";
import type { LoopStatus } from "../../model/pass.ts";
import { type Duration, duration, type Instant, seconds, since } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { counted, humanBytes, humanDuration, secondOf, usedPercent } from "../bytes.ts";
import { podSourceWords } from "../container-reasons.ts";
import { type Json, toJson } from "../document/json.ts";
import type { FilesystemStatus, PressureStatus, StatusReport } from "../document/status.ts";
import { forecastWords } from "../forecast.ts";
import { imageBlock } from "../image-reasons.ts";
import { passSummary } from "../pass-summary.ts";
import { eventWords } from "../pass-words.ts";
import { clean, present, type Screen } from "../terminal.ts";
import { diskBar, figuresLines } from "./disk.ts";
import { text } from "./plan.ts";
import { regretWords } from "./regrets.ts";
import { type Column, painted, tableLines, wrapped } from "./table.ts";

const EVENTS_SHOWN = 5;

const LOOP_COLUMNS: readonly Column[] = [
  { title: "LOOP" },
  { title: "EVERY", align: "right" },
  { title: "LAST", align: "right" },
  { title: "NEXT", align: "right" },
  { title: "RESULT", minimumWidth: 10 },
];

const VALUE_COLUMNS: readonly Column[] = [
  { title: "FIELD", minimumWidth: 16 },
  { title: "VALUE", minimumWidth: 10 },
  { title: "SOURCE", minimumWidth: 10, cut: "middle" },
];

export function statusTable(report: StatusReport, screen: Screen): string {
  return text([
    ...headLines(report, screen),
    "",
    ...problemLines(report, screen),
    "",
    ...report.filesystems.flatMap((it) => [...diskLines(it, report.now, screen), ""]),
    ...countLines(report),
    ...regretLines(report),
    "",
    ...tableLines(
      LOOP_COLUMNS,
      report.loops.map((loop) => loopRow(loop, report.now)),
      screen,
    ),
    "",
    ...report.lastPasses.flatMap((pass) =>
      wrapped(passSummary(pass, ` ${ago(pass.endedAt, report.now)}`), screen),
    ),
    "",
    ...eventLines(report, screen),
    "",
    ...valueLines(report, screen),
  ]);
}

function headLines(report: StatusReport, screen: Screen): readonly string[] {
  const up = humanDuration(positive(report.now, report.startedAt));
  const runtime =
    report.runtime === null
      ? "runtime not connected yet"
      : clean(`${report.runtime.name} ${report.runtime.version} at ${report.runtime.endpoint}`);
  const dry = report.dryRun ? ", dry run: nothing is removed" : "";
  const head = `crigc ${clean(report.version)}, pid ${report.pid}, up ${up}${dry}; ${runtime}`;
  return painted(screen, "bold", head);
}

/** Everything that keeps the agent from collecting. */
function problemLines(report: StatusReport, screen: Screen): readonly string[] {
  const { runtimeError, configurationError, ledgerError, podSource, bootGrace } = report;
  const problems = present([
    runtimeError !== null && `The runtime does not answer: ${clean(runtimeError)}`,
    configurationError !== null &&
      `The configuration files differ from what is in force: ${clean(configurationError)}`,
    ledgerError !== null && `The ledger is not on disk: ${clean(ledgerError)}`,
    podSource?.kind === "not-ready" && capitalised(podSourceWords(podSource)),
    report.hold.kind === "held" && holdWords(report.hold),
    bootGrace !== null &&
      `Grace period after a boot: nothing is removed for another ${humanDuration(bootGrace)}`,
    report.waiting !== null && `Image removal waits: ${imageBlock.text(report.waiting)}`,
    ...report.pressure.map(thresholdWords),
    report.pressure.length === 0 &&
      report.underPressure &&
      "Disk pressure has ended; it is still reported during the transition period",
  ]);
  return problems.flatMap((it) => painted(screen, "red", `${it}.`));
}

const holdWords = ({ until, reason }: Extract<HoldState, { kind: "held" }>): string =>
  `On hold ${until === null ? "until it is released" : `until ${secondOf(until)}`}${reason === "" ? "" : ` (${clean(reason)})`}`;

function thresholdWords(it: PressureStatus): string {
  const inodes = it.signal.endsWith(".inodesFree");
  const shown = (amount: bigint): string => (inodes ? `${amount} inodes` : humanBytes(amount));
  const grace = it.due ? "" : ", within its grace period";
  return `Disk pressure: ${it.signal} at ${clean(it.mountpoint)} is ${shown(it.available)}, below ${shown(it.limit)}${grace}`;
}

function diskLines(it: FilesystemStatus, now: Instant, screen: Screen): readonly string[] {
  const { capacityBytes, availableBytes, measuredAt } = it.filesystem;
  const percent = usedPercent(capacityBytes, availableBytes);
  return [
    ...figuresLines(
      { filesystem: it.filesystem, usedPercent: percent },
      screen,
      `, measured ${ago(measuredAt, now)}`,
    ),
    ...diskBar({ usedPercent: percent, thresholds: it.thresholds }, screen, "  "),
    ...forecastLines(it, screen),
  ];
}

const forecastLines = ({ forecast, thresholds }: FilesystemStatus, screen: Screen) =>
  forecast === null
    ? []
    : wrapped(capitalised(forecastWords(forecast, thresholds?.highPercent ?? null)), screen);

function countLines(report: StatusReport): readonly string[] {
  if (report.images === null) return [];
  const dead =
    report.deadContainers === null ? "" : `; ${counted(report.deadContainers, "dead container")}`;
  return [
    `${counted(report.images.count, "image")}, ${humanBytes(report.images.sizeBytes)} as reported${dead}`,
  ];
}

const regretLines = ({ regrets }: StatusReport): readonly string[] =>
  regrets === null || regrets.removedImages === 0 ? [] : [`History: ${regretWords(regrets)}`];

const loopRow = (loop: LoopStatus, now: Instant): readonly string[] => [
  loop.name,
  humanDuration(duration(BigInt(loop.periodMs) * 1_000_000n)),
  loop.lastEndedAt === null ? "-" : ago(loop.lastEndedAt, now),
  nextRun(loop, now),
  loopResult(loop),
];

function nextRun(loop: LoopStatus, now: Instant): string {
  if (!loop.enabled) return "-";
  if (loop.nextAt !== null) return ahead(positive(loop.nextAt, now));
  return loop.lastStartedAt === null ? "-" : "running";
}

function loopResult(loop: LoopStatus): string {
  if (!loop.enabled) return "disabled";
  if (loop.lastError !== null)
    return `failed ${counted(loop.consecutiveFailures, "time")}: ${clean(loop.lastError)}`;
  if (loop.lastEndedAt !== null) return "ok";
  return loop.lastStartedAt === null ? "not run yet" : "-";
}

function eventLines(report: StatusReport, screen: Screen): readonly string[] {
  const shown = report.events.slice(-EVENTS_SHOWN);
  return shown.flatMap((event) =>
    painted(screen, "yellow", `${ago(event.at, report.now)}: ${eventWords(event)}`),
  );
}

/** On a terminal only values that are not defaults; crigc config shows all. */
function valueLines(report: StatusReport, screen: Screen): readonly string[] {
  const shown =
    screen.width === null ? report.values : report.values.filter((it) => it.source !== "default");
  if (shown.length === 0) return [];
  return tableLines(
    VALUE_COLUMNS,
    shown.map((it) => [
      it.field,
      clean(valueText(it.value, OPERATORS[it.field])),
      clean(it.source),
    ]),
    screen,
  );
}

/** Operators other than "=", so that the text can be used as a flag. */
const OPERATORS: Readonly<Record<string, string>> = { evictionHard: "<", evictionSoft: "<" };

function valueText(value: Json, operator = "="): string {
  if (value === null) return "-";
  if (Array.isArray(value)) return value.map((it) => valueText(it)).join(", ") || "-";
  if (typeof value === "object")
    return (
      Object.entries(value)
        .map(([name, held]) => `${name}${operator}${valueText(held ?? null)}`)
        .join(",") || "-"
    );
  return typeof value === "string" ? value : toJson(value);
}

const ago = (at: Instant, now: Instant): string => {
  const span = positive(now, at);
  return span < SECOND ? "just now" : `${humanDuration(span)} ago`;
};
const ahead = (span: Duration): string => (span < SECOND ? "now" : `in ${humanDuration(span)}`);
const SECOND = seconds(1);

/** Clocks jump, so a negative duration is shown as 0. */
function positive(later: Instant, earlier: Instant): ReturnType<typeof since> {
  const span = since(later, earlier);
  return span < 0n ? duration(0n) : span;
}
