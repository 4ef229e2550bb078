// Formats values for configuration files, messages and tables.
import { duration } from "../../model/time.ts";
import { type FieldType, type FieldValue, isList } from "../field.ts";
import { formatDuration } from "./duration.ts";
import { formatQuantity } from "./quantity.ts";
import { OFF, operatorOf } from "./value.ts";

/** As in a configuration file: durations and sizes as text, the rest unchanged. */
export type Printed =
  null | number | boolean | string | readonly string[] | Readonly<Record<string, string>>;

/** For messages and tables. */
export const shownText = (type: FieldType, value: FieldValue): string =>
  printedText(type, value) || "none";

/** Lists and maps in the syntax of their flags; an empty list is "". */
export function printedText(type: FieldType, value: FieldValue): string {
  const words = printed(type, value);
  if (words === null) return OFF;
  if (isList(words)) return words.join(", ");
  if (typeof words !== "object") return String(words);
  const operator = operatorOf(type.kind === "statements" ? type.of : "grace");
  const statements = Object.entries(words).map(([signal, text]) => `${signal}${operator}${text}`);
  return statements.length === 0 ? OFF : statements.join(",");
}

export function printed(type: FieldType, value: FieldValue): Printed {
  if (typeof value !== "bigint") return value;
  return type.kind === "duration" ? formatDuration(duration(value)) : formatQuantity(value);
}
