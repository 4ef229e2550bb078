/** Parses a value of the table's types from text, words what was expected, and formats it. */
import { type Duration, duration } from "../../model/time.ts";
import { type FieldType, type FieldValue, isList } from "../field.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import { splitStatements, statementFault, type StatementKind } from "./eviction.ts";
import { formatQuantity, parseSize } from "./quantity.ts";

export type Parsed =
  | { readonly kind: "value"; readonly value: FieldValue }
  /** What is wrong and what was expected. */
  | { readonly kind: "fault"; readonly message: string };

const good = (value: FieldValue): Parsed => ({ kind: "value", value });
const bad = (message: string): Parsed => ({ kind: "fault", message });

const OFF = "off";
const SHOWN_MAX = 60;

/** Text in quotes, shortened, so that a huge or hostile value does not fill the screen. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);

/** Parses the text of a flag or variable. */
export function parseText(type: FieldType, text: string): Parsed {
  if (isOptional(type) && (text === "" || text === OFF)) return good(null);
  switch (type.kind) {
    case "integer":
      return /^[+-]?\d{1,15}$/.test(text)
        ? integerIn(type, Number(text), quoted(text))
        : unexpected(type, text);
    case "duration":
      return durationFrom(type, text);
    case "size": {
      const bytes = parseSize(text);
      return bytes === null || bytes <= 0n ? unexpected(type, text) : good(bytes);
    }
    case "boolean":
      return booleanFrom(text) ?? unexpected(type, text);
    case "choice":
      return type.choices.includes(text) ? good(text) : unexpected(type, text);
    case "endpoint":
    case "url":
    case "address":
    case "path": {
      const value = nameOf(type, text);
      return value === null ? unexpected(type, text) : good(value);
    }
    case "list":
      return good(text === "" ? [] : [text]);
    case "statements":
      return statementsFrom(type.of, text);
  }
}

const unexpected = (type: FieldType, text: string): Parsed =>
  bad(`${quoted(text)} is not ${expected(type)}`);

export function integerIn(
  type: Extract<FieldType, { kind: "integer" }>,
  value: number,
  shown: string,
): Parsed {
  const within = Number.isInteger(value) && value >= type.minimum && value <= type.maximum;
  if (within) return good(value);
  // The largest number is not worth a word, but to who went beyond it.
  const isBeyond = Number.isInteger(value) && Math.abs(value) > INT32_MAX;
  const range = `; it must be from ${type.minimum} to ${type.maximum}`;
  return bad(`${shown} is not ${expected(type)}${isBeyond ? range : ""}`);
}

function durationFrom(type: Extract<FieldType, { kind: "duration" }>, text: string): Parsed {
  const span = parseDuration(text);
  return span === null || span < minimumOf(type) ? unexpected(type, text) : good(span);
}

const minimumOf = (type: Extract<FieldType, { kind: "duration" }>): Duration =>
  parseDuration(type.minimum) ?? duration(0n);

/** What Go's flags take for a boolean. */
function booleanFrom(text: string): Parsed | null {
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return good(true);
  if (["0", "f", "F", "false", "FALSE", "False"].includes(text)) return good(false);
  return null;
}

function statementsFrom(of: StatementKind, text: string): Parsed {
  const statements = splitStatements(text, operatorOf(of));
  if (statements === null) return unexpected({ kind: "statements", of }, text);
  return checkedStatements(of, statements);
}

/** The first fault of a map of statements, or the map. */
export function checkedStatements(
  of: StatementKind,
  statements: Readonly<Record<string, string>>,
): Parsed {
  const faults = Object.entries(statements)
    .map(([signal, text]) => statementFault(of, signal, text))
    .filter((fault) => fault !== null);
  return faults.length === 0 ? good(statements) : bad(faults.join("; "));
}

const operatorOf = (of: StatementKind): "<" | "=" => (of === "threshold" ? "<" : "=");

function nameOf(
  type: Extract<FieldType, { kind: "endpoint" | "url" | "address" | "path" }>,
  text: string,
): string | null {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (text === "" || /[\u0000-\u001f\u007f]/.test(text)) return null;
  switch (type.kind) {
    case "endpoint":
      return socketOf(text);
    case "url":
      return URL.canParse(text) && /^https?:\/\/[^/?#@]+\/?$/.test(text)
        ? text.replace(/\/$/, "")
        : null;
    case "address":
      return isAddress(text) ? text : null;
    case "path":
      return type.relative === true ? text : shortestPath(text);
  }
}

/** What the kernel takes as the path of a socket, in bytes. */
const SOCKET_PATH_BYTES_MAX = 107;

function socketOf(text: string): string | null {
  const path = text.replace(/^unix:\/\//, "");
  const fits = new TextEncoder().encode(path).length <= SOCKET_PATH_BYTES_MAX;
  return fits && /^\/[^/]/.test(path) ? `unix://${path}` : null;
}

function isAddress(text: string): boolean {
  const match = /^(?:\[[\da-fA-F:.]+\]|[^\s:[\]/]*):(\d{1,5})$/.exec(text);
  return match !== null && Number(match[1]) >= 1 && Number(match[1]) <= 65_535;
}

/** Absolute, without empty and `.` components; `..` is refused, because it means another thing behind a link. */
function shortestPath(text: string): string | null {
  const components = text.split("/").filter((component) => component !== "" && component !== ".");
  if (!text.startsWith("/") || components.includes("..")) return null;
  return `/${components.join("/")}`;
}

export const isOptional = (type: FieldType): boolean => "optional" in type && type.optional;

/** The expected syntax, for messages and documentation: `a whole number from 0 to 100`. */
export function expected(type: FieldType): string {
  const what = expectedWithoutOff(type);
  return isOptional(type) && type.kind !== "path" && type.kind !== "endpoint"
    ? `${what}, or off`
    : what;
}

function expectedWithoutOff(type: FieldType): string {
  switch (type.kind) {
    case "integer":
      return integerWords(type.minimum, type.maximum);
    case "duration":
      return `a duration of ${formatDuration(minimumOf(type))} or more, such as 30s, 5m, 1h30m or 7d`;
    case "size":
      return "a size above 0, such as 500Mi, 20Gi or 20G";
    case "boolean":
      return "true or false";
    case "choice":
      return `one of ${type.choices.join(", ")}`;
    case "endpoint":
      return `a unix socket, as unix:///PATH or an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes`;
    case "url":
      return "a URL such as https://127.0.0.1:10250";
    case "address":
      return "an address such as 127.0.0.1:9419";
    case "path":
      return type.relative === true
        ? `the path of a ${type.of}`
        : `an absolute path of a ${type.of}, without ..`;
    case "list":
      return "a string or a list of strings";
    case "statements":
      return `a list such as ${STATEMENT_EXAMPLES[type.of]}`;
  }
}

const INT32_MAX = 2_147_483_647;

function integerWords(minimum: number, maximum: number): string {
  if (maximum < INT32_MAX) return `a whole number from ${minimum} to ${maximum}`;
  return minimum < 0 ? "a whole number" : `a whole number of ${minimum} or more`;
}

const STATEMENT_EXAMPLES = {
  threshold: "nodefs.available<10%,imagefs.available<5Gi",
  grace: "nodefs.available=1m30s,imagefs.available=2m",
  reclaim: "nodefs.available=500Mi,imagefs.available=5%",
} as const;

/** The value as a configuration file would have it: durations and sizes as text, the rest as it is. */
export type Printed =
  null | number | boolean | string | readonly string[] | Readonly<Record<string, string>>;

/** One text for messages and tables: lists and maps as their flags would have them. */
export function printedText(type: FieldType, value: FieldValue): string {
  const words = printed(type, value);
  if (words === null) return "off";
  if (isList(words)) return words.join(", ");
  if (typeof words !== "object") return String(words);
  const operator = operatorOf(type.kind === "statements" ? type.of : "grace");
  return Object.entries(words)
    .map(([signal, text]) => `${signal}${operator}${text}`)
    .join(",");
}

export function printed(type: FieldType, value: FieldValue): Printed {
  if (typeof value !== "bigint") return value;
  return type.kind === "duration" ? formatDuration(duration(value)) : formatQuantity(value);
}
