/** One line of the log as text or JSON: a header, a sentence, and named figures. */

import { type Instant, toRfc3339 } from "../../model/time.ts";
import { type Json, type JsonObject, toJson } from "../../report/document.ts";
import { clean } from "../../report/terminal.ts";

export type LogFormat = "text" | "json";
export type Severity = "info" | "warning" | "error";
/** Fields after the sentence; names end in their unit, as in JSON documents. */
export type Fields = JsonObject;

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

/** Contains no newline. */
export const logLine = (entry: LogEntry, format: LogFormat): string =>
  format === "json" ? jsonLine(entry) : textLine(entry);

// `I0115 12:00:00.250000 image-gc] Removed an image image="nginx:1.25" freedBytes=1048576`: severity, month and day,
// time of day in UTC to the microsecond.
function textLine(entry: LogEntry): string {
  const [date = "", clock = ""] = toRfc3339(entry.at).slice(0, -1).split("T");
  const [wholeSeconds = "", fraction = ""] = clock.split(".");
  const micros = fraction.padEnd(6, "0").slice(0, 6);
  const header = `${LETTERS[entry.severity]}${date.slice(5, 7)}${date.slice(8)} ${wholeSeconds}.${micros} ${entry.component}]`;
  return [header, clean(entry.message), ...Object.entries(entry.fields).flatMap(textField)].join(
    " ",
  );
}

const LETTERS = { info: "I", warning: "W", error: "E" } as const;

/** Text shows plain values only; nested ones are in the JSON log. */
function textField([name, value]: readonly [string, Json | undefined]): readonly string[] {
  if (value === undefined || value === null || isNested(value)) return [];
  return [`${name}=${typeof value === "string" ? toJson(clean(value)) : toJson(value)}`];
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
