/** The log: one line per fact. Folds identical failures and reports success after failure. */

import type { Verbosity } from "../../model/ports.ts";
import { type Duration, duration, type Instant, minutes, since } from "../../model/time.ts";
import { counted, humanDuration } from "../../report/bytes.ts";
import { Fold } from "./fold.ts";
import { type Fields, type LogEntry, type LogFormat, logLine, type Severity } from "./line.ts";

export interface LogOptions {
  readonly format: LogFormat;
  readonly verbosity: number;
  /** Takes one line without its newline; usually standard error. */
  readonly sink: (line: string, severity: Severity) => void;
  readonly now: () => Instant;
}

export interface Log {
  info(verbosity: Verbosity, message: string, fields?: Fields): void;
  warning(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A failure that may repeat: identical ones of a topic are folded into one line with a count. */
  failure(topic: string, message: string, fields?: Fields): void;
  /** Like `failure`, as a warning. */
  recurring(topic: string, message: string, fields?: Fields): void;
  /** Logs that `what` succeeds again, if the topic had failed. */
  success(topic: string, what: string): void;
  enabled(verbosity: Verbosity): boolean;
  /** The same log for another component. */
  named(component: string): Log;
  /** Changes the format from now on; open series of failures stay known. */
  reconfigured(form: Pick<LogOptions, "format" | "verbosity">): Log;
  /** Writes the folded counts; before the program ends. */
  flush(): void;
}

const FOLD_WINDOW = minutes(10);

export function createLog(options: LogOptions): Log {
  const fold = new Fold(FOLD_WINDOW);
  return logOfComponent("crigc", { ...options, fold });
}

interface Shared extends LogOptions {
  readonly fold: Fold;
}

function logOfComponent(component: string, shared: Shared): Log {
  const write = (entry: LogEntry): void =>
    shared.sink(logLine(entry, shared.format), entry.severity);
  const writeFolded = (entries: readonly LogEntry[]): void => entries.forEach(write);
  const entry = (severity: Severity, message: string, fields: Fields): LogEntry => ({
    at: shared.now(),
    severity,
    verbosity: null,
    component,
    message,
    fields,
  });
  const say = (it: LogEntry): void => {
    writeFolded(shared.fold.due(it.at));
    write(it);
  };
  const recur = (topic: string, it: LogEntry): void => writeFolded(shared.fold.failed(topic, it));
  const enabled = (verbosity: Verbosity): boolean => verbosity <= shared.verbosity;

  return {
    enabled,
    info: (verbosity, message, fields = {}) => {
      if (enabled(verbosity)) say({ ...entry("info", message, fields), verbosity });
    },
    warning: (message, fields = {}) => say(entry("warning", message, fields)),
    error: (message, fields = {}) => say(entry("error", message, fields)),
    failure: (topic, message, fields = {}) => recur(topic, entry("error", message, fields)),
    recurring: (topic, message, fields = {}) => recur(topic, entry("warning", message, fields)),
    success: (topic, what) => {
      const ended = shared.fold.succeeded(topic);
      if (ended === null) return;
      const it = entry("info", "", {});
      say({
        ...it,
        verbosity: 0,
        message: recovered(what, ended.failures, since(it.at, ended.firstAt)),
      });
    },
    named: (name) => logOfComponent(name, shared),
    reconfigured: ({ format, verbosity }) =>
      logOfComponent(component, { ...shared, format, verbosity }),
    flush: () => writeFolded(shared.fold.flush(shared.now())),
  };
}

const recovered = (what: string, failures: number, span: Duration): string =>
  `${what} succeeded after ${counted(failures, "failure")} in ${humanDuration(span < 0n ? duration(0n) : span)}`;
