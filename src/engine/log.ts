/**
 * The log: one line per fact, as text or JSON, and what it says of passes, removals and events. A condition that lasts is
 * logged when it begins, changes and ends.
 */

import type { Config } from "../config/config.ts";
import { isCutOff } from "../gc/pass-warnings.ts";
import type { Journal } from "../gc/ports.ts";
import type { PassId } from "../model/ids.ts";
import {
  type ContainerItem,
  hasRemoved,
  type ImageItem,
  type LogItem,
  outcomeItems,
  type Pass,
  type SandboxItem,
} from "../model/pass.ts";
import type { Verbosity } from "../model/ports.ts";
import { duration, type Instant, minutes, since, toMs, toRfc3339 } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { wallClock } from "../node/clock.ts";
import { type Json, type JsonObject, toJson } from "../report/document.ts";
import {
  imageResultWords,
  passSummary,
  passTitle,
  removalResultWords,
} from "../report/pass-words.ts";
import { imageKeep, imageTrigger, podReasons } from "../report/reasons.ts";
import { clean } from "../report/terminal.ts";
import {
  containerName,
  humanBytes,
  humanDuration,
  imageName,
  kindTitle,
  plural,
  sandboxName,
  usedPercent,
} from "../report/words.ts";

/** `brief`: the message alone, for a terminal. */
export type LogFormat = "text" | "json" | "brief";
export type Severity = "info" | "warning" | "error";

export interface LogEntry {
  readonly at: Instant;
  readonly severity: Severity;
  /** 0 to 4; absent for warnings and errors. */
  readonly verbosity: number | null;
  /** The component: a loop, `config`, `control`. */
  readonly component: string;
  readonly message: string;
  /** Names end in their unit, as in JSON documents. */
  readonly fields: JsonObject;
}

type Line = Omit<LogEntry, "at" | "component">;

export interface LogOptions {
  readonly format: LogFormat;
  readonly verbosity: number;
  /** Takes one line without its newline; usually standard error. */
  readonly sink: (line: string) => void;
  readonly now: () => Instant;
}

/** Failures of one topic in a row. */
interface Series {
  readonly message: string;
  readonly writtenAt: Instant;
  /** Since then. */
  readonly unwritten: number;
  /** Without warnings, which are no failures. */
  readonly failures: number;
  readonly firstAt: Instant;
}

/** A failure that repeats is logged again after this. */
const REPEAT_AFTER = minutes(10);
/** The series that failed longest ago is dropped first. */
const SERIES_MAX = 256;

export class Log {
  readonly #options: LogOptions;
  readonly #component: string;
  /** By topic, the longest silent first. Shared by the logs of all components. */
  readonly #series: Map<string, Series>;

  constructor(options: LogOptions, component = "crigc", series = new Map<string, Series>()) {
    this.#options = options;
    this.#component = component;
    this.#series = series;
  }

  info(verbosity: Verbosity, message: string, fields: JsonObject = {}): void {
    if (this.enabled(verbosity)) this.#write({ severity: "info", verbosity, message, fields });
  }

  warning(message: string, fields: JsonObject = {}): void {
    this.#write({ severity: "warning", verbosity: null, message, fields });
  }

  /** A failure that may repeat: an identical one of its topic is logged again after ten minutes. */
  failure(topic: string, message: string, fields: JsonObject = {}): void {
    this.#fold(topic, { severity: "error", verbosity: null, message, fields });
  }

  /** Like `failure`, as a warning. */
  recurring(topic: string, message: string, fields: JsonObject = {}): void {
    this.lasting({ topic, condition: message }, message, fields);
  }

  /** The same for a message whose figures change while the condition lasts. */
  lasting(its: { topic: string; condition: string }, message: string, fields: JsonObject): void {
    const line = { severity: "warning", verbosity: null, message, fields } as const;
    this.#fold(its.topic, line, its.condition);
  }

  /** Logs that `what` succeeds again, if the topic had failed. */
  success(topic: string, what: string): void {
    const ended = this.#series.get(topic);
    this.#series.delete(topic);
    if (ended === undefined || ended.failures === 0) return;
    const { failures, firstAt } = ended;
    const took = since(this.#options.now(), firstAt);
    const span = humanDuration(took < 0n ? duration(0n) : took);
    const message = `${what} succeeded after ${plural(failures, "failure")} in ${span}`;
    this.#write({ severity: "info", verbosity: 0, message, fields: {} });
  }

  get isBrief(): boolean {
    return this.#options.format === "brief";
  }

  enabled(verbosity: Verbosity): boolean {
    return verbosity <= this.#options.verbosity;
  }

  /** The same log for another component. */
  named(component: string): Log {
    return new Log(this.#options, component, this.#series);
  }

  #fold(topic: string, line: Line, condition = line.message): void {
    const at = this.#options.now();
    const message = withoutNumbers(condition);
    const known = this.#series.get(topic);
    const same = known?.message === message ? known : null;
    const age = since(at, same?.writtenAt ?? at);
    // If the wall clock was set back, it is logged at once.
    const isDue = same === null || age >= REPEAT_AFTER || age < 0n;
    const unwritten = (same?.unwritten ?? 0) + 1;
    this.#series.delete(topic);
    this.#series.set(topic, {
      message,
      firstAt: known?.firstAt ?? at,
      failures: (known?.failures ?? 0) + (line.severity === "error" ? 1 : 0),
      writtenAt: isDue ? at : same.writtenAt,
      unwritten: isDue ? 0 : unwritten,
    });
    const [oldest] = this.#series.keys();
    if (this.#series.size > SERIES_MAX && oldest !== undefined) this.#series.delete(oldest);
    const repeated = unwritten > 1 ? { repeated: unwritten } : {};
    if (isDue) this.#write({ ...line, fields: { ...line.fields, ...repeated } });
  }

  #write(line: Line): void {
    const { now, format, sink } = this.#options;
    sink(logLine({ at: now(), component: this.#component, ...line }, format));
  }
}

/** Numbers of temporary files differ in each error of a full disk: `.tmp-images.json393028135`. */
const withoutNumbers = (message: string): string => message.replaceAll(/\d{6,}/g, "");

/** The log on stderr. */
export const logOf = ({ values }: Config, stderr: (text: string) => void, isBrief = false): Log =>
  new Log({
    format: isBrief ? "brief" : values["logging.format"],
    verbosity: values["logging.verbosity"],
    sink: (line) => stderr(`${line}\n`),
    now: wallClock,
  });

/** Contains no newline. */
export function logLine(entry: LogEntry, format: LogFormat): string {
  if (format === "brief") return clean(entry.message);
  return format === "json" ? jsonLine(entry) : textLine(entry);
}

// `I0115 12:00:00.250000 image-gc] Removed an image image="nginx:1.25" freedBytes=1048576`: severity, month and day,
// time of day in UTC to the microsecond.
function textLine({ at, severity, component, message, fields }: LogEntry): string {
  const [date = "", clock = ""] = toRfc3339(at).slice(0, -1).split("T");
  const [seconds = "", fraction = ""] = clock.split(".");
  const day = `${date.slice(5, 7)}${date.slice(8)}`;
  const header = `${LETTERS[severity]}${day} ${seconds}.${fraction.padEnd(6, "0").slice(0, 6)} ${component}]`;
  return [header, clean(message), ...Object.entries(fields).flatMap(textField)].join(" ");
}

const LETTERS = { info: "I", warning: "W", error: "E" } as const;

/** Text shows plain values only; nested ones are in the JSON log. */
function textField([name, value]: readonly [string, Json | undefined]): readonly string[] {
  if (value === undefined || value === null || isNested(value)) return [];
  return [`${name}=${toJson(typeof value === "string" ? clean(value) : value)}`];
}

const isNested = (value: Json): boolean =>
  Array.isArray(value) ? value.some((it) => typeof it === "object") : typeof value === "object";

const jsonLine = (entry: LogEntry): string =>
  toJson({
    ts: toRfc3339(entry.at),
    level: entry.severity,
    v: entry.verbosity ?? undefined,
    component: entry.component,
    msg: entry.message,
    ...entry.fields,
  });

/** Tells each listener, in this order, what it listens to. */
export function journalOf(...listeners: readonly Partial<Journal>[]): Journal {
  const each = (tell: (listener: Partial<Journal>) => void): void => listeners.forEach(tell);
  return {
    passStarted: (start) => each((it) => it.passStarted?.(start)),
    imageDone: (id, item) => each((it) => it.imageDone?.(id, item)),
    containerDone: (id, item) => each((it) => it.containerDone?.(id, item)),
    passEnded: (pass, seen) => each((it) => it.passEnded?.(pass, seen)),
    event: (event) => each((it) => it.event?.(event)),
    say: (verbosity, message) => each((it) => it.say?.(verbosity, message)),
    failed: (topic, message) => each((it) => it.failed?.(topic, message)),
    succeeded: (topic, what) => each((it) => it.succeeded?.(topic, what)),
  };
}

export const logListener = (log: Log): Partial<Journal> => ({
  imageDone: (id, item) => logImage(log, id, item),
  containerDone: (id, item) => logContainerItem(log, id, item),
  // After a brief log comes the report of the pass, which has its end and its events.
  passEnded: (pass) => (log.isBrief ? undefined : logPassEnd(log, pass)),
  event: ({ reason, message, passId }) => {
    if (log.isBrief) return;
    const fields = { event: reason, passId: passId ?? undefined };
    log.recurring(`event/${reason}`, message, fields);
  },
  say: (verbosity, message) => log.info(verbosity, message),
  failed: (topic, message) => log.failure(topic, message),
  succeeded: (topic, what) => log.success(topic, what),
});

function logImage(log: Log, passId: PassId, { candidate, trigger, result, took }: ImageItem): void {
  const { image } = candidate;
  const { id, sizeBytes } = image;
  logRemoval(log, `image/${id}`, {
    what: `image ${imageName(image)}`,
    result: result.kind,
    outcome: imageResultWords(result),
    why: imageTrigger.text(trigger),
    rest:
      "availableBytes" in result && typeof result.availableBytes === "bigint"
        ? `; ${humanBytes(result.availableBytes)} available`
        : "",
    fields: { image: id, trigger: trigger.kind, sizeBytes, tookMs: toMs(took), passId },
  });
}

function logContainerItem(
  log: Log,
  passId: PassId,
  item: ContainerItem | SandboxItem | LogItem,
): void {
  const { what, id, ...figures } = figuresOf(item);
  const fields = { ...figures, passId };
  logRemoval(log, `removal/${id}`, {
    what,
    result: item.result.kind,
    outcome: removalResultWords(item.result),
    why: podReasons.text(item.reason),
    fields,
  });
  if ("logError" in item && item.logError !== null)
    log.recurring(`logs/${id}`, `Logs of ${what}: ${item.logError}`, fields);
}

/** Instances of a container have its name in common, so its ID tells them apart. */
function figuresOf(item: ContainerItem | SandboxItem | LogItem) {
  if ("planned" in item) {
    const { planned, logFiles, logBytes } = item;
    const { id } = planned.container;
    const what = `container ${containerName(planned.container)}`;
    return { what, id, container: id, logFiles, logBytes };
  }
  if ("sandbox" in item) {
    const { id } = item.sandbox;
    return { what: `sandbox ${sandboxName(item.sandbox)}`, id, sandbox: id };
  }
  const { kind, entry, bytes } = item;
  return { what: `${kindTitle(kind)} ${clean(entry)}`, id: entry, entry, logBytes: bytes };
}

interface RemovalLine {
  readonly what: string;
  readonly result: (ImageItem | ContainerItem)["result"]["kind"];
  readonly outcome: string;
  readonly why: string;
  /** After the reason. */
  readonly rest?: string;
  readonly fields: JsonObject;
}

function logRemoval(log: Log, topic: string, line: RemovalLine): void {
  const { what, result, outcome, why, rest = "", fields } = line;
  const message = capitalised(`${what}: ${outcome}`);
  if (result === "failed") return log.failure(topic, message, fields);
  if (result === "ghost") return log.recurring(topic, message, fields);
  if (result === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of ${what}`);
  log.info(2, `${message} (${why})${rest}`, fields);
}

/** Removals are logged as they happen. */
function logPassEnd(all: Log, pass: Pass): void {
  const log = all.named(pass.kind);
  const title = capitalised(passTitle(pass.kind));
  const topic = `pass/${pass.kind}`;
  const fields = summaryFields(pass);
  const errors = pass.containers?.errors ?? [];
  const failed = pass.error ?? pass.images?.error ?? null;
  const isIdle = !didSomething(pass);
  explainImages(log, pass);
  // The agent logs why its loop of containers failed.
  if (pass.containers !== null && pass.kind !== "container-gc") {
    const what = `${title}: containers and logs`;
    if (errors.length === 0) log.success(`${topic}/containers`, what);
    else log.failure(`${topic}/containers`, `${what}: ${errors.join("; ")}`, { passId: pass.id });
  }
  if (failed !== null) return log.failure(topic, `${title} failed: ${failed}`, fields);
  if (pass.kind === "container-gc" && isIdle && errors.length > 0) return;
  // Repeats every few seconds while the pressure lasts; only its figures change.
  if (pass.kind === "pressure" && !hasRemoved(pass))
    return log.lasting({ topic, condition: conditionOf(pass) }, passSummary(pass), fields);
  if (!isCutOff(pass)) log.success(topic, title);
  log.info(isIdle ? 2 : 1, passSummary(pass), fields);
}

const conditionOf = ({ images, containers, plan }: Pass): string =>
  [
    images?.end,
    plan.images?.blocks[0]?.kind,
    containers?.end,
    plan.containers?.blocks[0]?.kind,
  ].join();

/** Figures of the summary line. */
function summaryFields(pass: Pass): JsonObject {
  const images = pass.images;
  const available = images?.availableAfter ?? null;
  const capacity = images?.capacityBytes ?? null;
  return {
    passId: pass.id,
    tookMs: toMs(since(pass.endedAt, pass.startedAt)),
    dryRun: pass.dryRun || undefined,
    end: images?.end,
    wantedBytes: images?.wantedBytes ?? undefined,
    measuredFreedBytes: images?.measuredFreedBytes,
    reportedFreedBytes: images?.reportedFreedBytes,
    availableBytes: available ?? undefined,
    usedPercent:
      available === null || capacity === null ? undefined : usedPercent(capacity, available),
  };
}

function explainImages(log: Log, pass: Pass): void {
  const plan = pass.plan.images;
  if (plan === null || !log.enabled(4)) return;
  for (const it of plan.kept)
    log.info(4, `Image ${imageName(it.image)} kept: ${imageKeep.text(it.reason)}`, {
      image: it.image.id,
      code: it.reason.kind,
      passId: pass.id,
    });
  for (const [index, it] of plan.candidates.entries())
    log.info(4, `Image ${imageName(it.image)}: candidate ${index + 1}`, {
      image: it.image.id,
      unusedForMs: toMs(it.unusedFor),
      expected: it.expected,
      passId: pass.id,
    });
}

const didSomething = (pass: Pass): boolean =>
  (pass.images?.items.length ?? 0) > 0 ||
  (pass.containers !== null && outcomeItems(pass.containers).length > 0);
