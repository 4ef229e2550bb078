/** The log: one line per fact, as text or JSON. A condition that lasts is logged when it begins, changes and ends. */

import type { Config } from "../config/config.ts";
import type { Verbosity } from "../model/ports.ts";
import { duration, type Instant, minutes, since, toRfc3339 } from "../model/time.ts";
import { wallClock } from "../node/clock.ts";
import { type Json, type JsonObject, toJson } from "../report/document.ts";
import { clean } from "../report/terminal.ts";
import { counted, humanDuration } from "../report/words.ts";

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
    const message = `${what} succeeded after ${counted(failures, "failure")} in ${span}`;
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
