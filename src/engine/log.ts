/** The log: one line per fact, as text or JSON. Folds identical failures and reports success after failure. */

import { fstatSync } from "node:fs";

import type { Config } from "../config/config.ts";
import type { Environment } from "../config/settings.ts";
import type { Verbosity } from "../model/ports.ts";
import { type Duration, duration, type Instant, minutes, since, toRfc3339 } from "../model/time.ts";
import { wallClock } from "../node/clock.ts";
import { type Json, type JsonObject, toJson } from "../report/document.ts";
import { clean } from "../report/terminal.ts";
import { counted, humanDuration } from "../report/words.ts";

export type LogFormat = "text" | "json";
export type Severity = "info" | "warning" | "error";
/** Fields after the sentence; names end in their unit, as in JSON documents. */
type Fields = JsonObject;

export interface LogEntry {
  readonly at: Instant;
  readonly severity: Severity;
  /** 0 to 5; absent for warnings and errors. */
  readonly verbosity: number | null;
  /** The component: a loop, `config`, `control`. */
  readonly component: string;
  readonly message: string;
  readonly fields: Fields;
}

export interface LogOptions {
  readonly format: LogFormat;
  readonly verbosity: number;
  /** Takes one line without its newline; usually standard error. */
  readonly sink: (line: string, severity: Severity) => void;
  readonly now: () => Instant;
}

/** Failures of one topic in a row. */
interface Series {
  /** The newest occurrence. */
  entry: LogEntry;
  writtenAt: Instant;
  /** Since it was last logged. */
  unwritten: number;
  /** Without warnings, which are no failures. */
  failures: number;
  readonly firstAt: Instant;
}

/** A repeated failure is logged again after this. */
const FOLD_WINDOW = minutes(10);
/** Maximum number of series; the one that failed longest ago is dropped first. */
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

  info(verbosity: Verbosity, message: string, fields: Fields = {}): void {
    if (this.enabled(verbosity)) this.#say({ ...this.#entry("info", message, fields), verbosity });
  }

  warning(message: string, fields: Fields = {}): void {
    this.#say(this.#entry("warning", message, fields));
  }

  error(message: string): void {
    this.#say(this.#entry("error", message, {}));
  }

  /** A failure that may repeat: identical ones of a topic are folded into one line with a count. */
  failure(topic: string, message: string, fields: Fields = {}): void {
    this.#fold(topic, this.#entry("error", message, fields));
  }

  /** Like `failure`, as a warning. */
  recurring(topic: string, message: string, fields: Fields = {}): void {
    this.#fold(topic, this.#entry("warning", message, fields));
  }

  /** Logs that `what` succeeds again, if the topic had failed. */
  success(topic: string, what: string): void {
    const ended = this.#series.get(topic);
    if (ended === undefined) return;
    this.#series.delete(topic);
    if (ended.failures === 0) return;
    const took = humanDuration(atLeastZero(since(this.#options.now(), ended.firstAt)));
    const message = `${what} succeeded after ${counted(ended.failures, "failure")} in ${took}`;
    this.#say({ ...this.#entry("info", message, {}), verbosity: 0 });
  }

  enabled(verbosity: Verbosity): boolean {
    return verbosity <= this.#options.verbosity;
  }

  /** The same log for another component. */
  named(component: string): Log {
    return new Log(this.#options, component, this.#series);
  }

  /** Writes the folded counts; before the program ends. */
  flush(): void {
    const now = this.#options.now();
    for (const series of this.#series.values()) this.#writeCount(series, now);
  }

  #entry(severity: Severity, message: string, fields: Fields): LogEntry {
    const at = this.#options.now();
    return { at, severity, verbosity: null, component: this.#component, message, fields };
  }

  #say(entry: LogEntry): void {
    for (const series of this.#series.values())
      if (isDue(series, entry.at)) this.#writeCount(series, entry.at);
    this.#write(entry);
  }

  /** Logs the rest of an older series, then the failure, unless it is a repetition. */
  #fold(topic: string, entry: LogEntry): void {
    const { at, severity } = entry;
    const another = severity === "error" ? 1 : 0;
    const known = this.#series.get(topic);
    this.#series.delete(topic);
    const { failures = 0, firstAt = at } = known ?? {};
    if (known !== undefined && lasting(known.entry.message) === lasting(entry.message)) {
      known.entry = entry;
      known.failures += another;
      known.unwritten += 1;
      this.#series.set(topic, known);
      if (isDue(known, at)) this.#writeCount(known, at);
      return;
    }
    this.#series.set(topic, {
      entry,
      writtenAt: at,
      unwritten: 0,
      failures: failures + another,
      firstAt,
    });
    if (known !== undefined) this.#writeCount(known, at);
    const [oldest] = this.#series;
    if (this.#series.size > SERIES_MAX && oldest !== undefined) {
      this.#series.delete(oldest[0]);
      this.#writeCount(oldest[1], at);
    }
    this.#write(entry);
  }

  /** The newest occurrence with the number of those that were not logged. */
  #writeCount(series: Series, now: Instant): void {
    const { entry, unwritten: repeated } = series;
    if (repeated === 0) return;
    series.unwritten = 0;
    series.writtenAt = now;
    this.#write(repeated === 1 ? entry : { ...entry, fields: { ...entry.fields, repeated } });
  }

  #write(entry: LogEntry): void {
    this.#options.sink(logLine(entry, this.#options.format), entry.severity);
  }
}

/** Without the numbers of temporary files, which differ in each error of a full disk: `.tmp-images.json393028135`. */
const lasting = (message: string): string => message.replaceAll(/\d{6,}/g, "");

/** If the wall clock was set back, a series is due at once instead of staying silent for that long. */
function isDue({ unwritten, writtenAt }: Series, now: Instant): boolean {
  const age = since(now, writtenAt);
  return unwritten > 0 && (age >= FOLD_WINDOW || age < 0n);
}

const atLeastZero = (span: Duration): Duration => (span < 0n ? duration(0n) : span);

const logForm = ({ values }: Config): Pick<LogOptions, "format" | "verbosity"> => ({
  format: values["logging.format"],
  verbosity: values["logging.verbosity"],
});

export interface LogStream {
  readonly stderr: (text: string) => void;
  /** Prefix of log lines on stderr. */
  readonly logPrefix: (severity: Severity) => string;
}

/** The log on stderr. */
export const logOf = (config: Config, { stderr, logPrefix }: LogStream): Log =>
  new Log({
    ...logForm(config),
    sink: (line, severity) => stderr(`${logPrefix(severity)}${line}\n`),
    now: wallClock,
  });

/** Contains no newline. */
export const logLine = (entry: LogEntry, format: LogFormat): string =>
  format === "json" ? jsonLine(entry) : textLine(entry);

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

/** Syslog priorities; the journal strips them from the line. */
const PRIORITIES: Readonly<Record<Severity, string>> = {
  error: "<3>",
  warning: "<4>",
  info: "<6>",
};

/** Prefix of a log line for `journalctl -p warning`; empty if the journal does not read the file. */
export function journalPrefix(
  environment: Environment,
  file: number,
): (severity: Severity) => string {
  const isRead = environment["JOURNAL_STREAM"] === identityOf(file);
  return (severity) => (isRead ? PRIORITIES[severity] : "");
}

/** Device and inode, as systemd writes them. The variable is set even if the unit's output goes elsewhere. */
function identityOf(file: number): string {
  try {
    const { dev, ino } = fstatSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return "";
  }
}
