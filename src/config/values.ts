/** Parses values of the table's types, from a text or a file, and prints them. */
import * as v from "valibot";

import { operatorOf, splitStatements, type Statements } from "./eviction.ts";
import type { FieldType, FieldValue } from "./types.ts";
import { formatDuration, formatQuantity } from "./units.ts";
import { described, quoted } from "./words.ts";

export type Parsed =
  | { readonly kind: "value"; readonly value: FieldValue }
  /** What is invalid, and what was expected. */
  | { readonly kind: "fault"; readonly message: string };

export const OFF = "off";

/** Parses the text of a flag or a variable. */
export function parseText(type: FieldType, text: string): Parsed {
  const read = parsed(type, fileForm(type, text), `${quoted(text)} is not ${type.expected}`);
  // A file may be named `off`; otherwise the default one would be read.
  const isNone = text === "" || (text === OFF && read.kind === "fault");
  return type.optional === true && isNone ? { kind: "value", value: null } : read;
}

/** Parses a value of a configuration file. */
export function parseValue(type: FieldType, value: unknown): Parsed {
  const isNone = value === OFF || (value === "" && type.kind !== "integer");
  if (type.optional === true && isNone) return { kind: "value", value: null };
  return parsed(type, value, `${described(value)} is not ${type.expectedInFile ?? type.expected}`);
}

function parsed({ schema }: FieldType, input: unknown, message: string): Parsed {
  const result = v.safeParse(schema, input, { message });
  if (result.success) return { kind: "value", value: result.output };
  const [issue] = result.issues;
  const [outer] = issue.path ?? [];
  const item = outer?.type === "array" ? `item ${outer.key + 1}` : "";
  return { kind: "fault", message: `${item}${issue.message}` };
}

/** The value that a file has for the text of a flag; the text itself if it is invalid. */
function fileForm({ kind, statements: of }: FieldType, text: string): unknown {
  if (kind === "integer") return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : text;
  if (kind === "boolean") {
    // Booleans of Go's flags.
    if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
    return ["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : text;
  }
  if (of === undefined) return text;
  // A variable cannot be empty: that counts as unset.
  return text === OFF ? {} : (splitStatements(text, operatorOf(of)) ?? text);
}

/** As in a configuration file: durations and sizes as text, the rest unchanged. */
export type Printed =
  null | number | boolean | string | readonly string[] | Readonly<Record<string, string>>;

export function printed({ kind }: FieldType, value: FieldValue): Printed {
  if (typeof value !== "bigint") return value;
  return kind === "duration" ? formatDuration(value) : formatQuantity(value);
}

/** Lists and maps in the syntax of their flags; an empty list is "". */
export function printedText(type: FieldType, value: FieldValue): string {
  const words = printed(type, value);
  if (words === null) return OFF;
  if (isList(words)) return words.join(", ");
  if (typeof words !== "object") return String(words);
  const operator = operatorOf(type.statements ?? "grace");
  return (
    Object.entries(words)
      .map((statement) => statement.join(operator))
      .join(",") || OFF
  );
}

/** For messages and tables. */
export const shownText = (type: FieldType, value: FieldValue): string =>
  printedText(type, value) || "none";

export const isList = (value: FieldValue): value is readonly string[] => Array.isArray(value);

export const isStatements = (value: FieldValue): value is Statements =>
  typeof value === "object" && value !== null && !isList(value);
