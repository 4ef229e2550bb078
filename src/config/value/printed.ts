// Values as text: in a configuration file, in messages and in tables.
import { duration } from "../../model/time.ts";
import { type FieldType, type FieldValue, isList } from "../field.ts";
import { formatDuration } from "./duration.ts";
import { formatQuantity } from "./quantity.ts";
import { OFF, operatorOf } from "./value.ts";

/** The value as a configuration file would have it: durations and sizes as text, the rest as it is. */
export type Printed =
  null | number | boolean | string | readonly string[] | Readonly<Record<string, string>>;

/** One text for messages and tables: lists and maps as their flags would have them. */
export function printedText(type: FieldType, value: FieldValue): string {
  const words = printed(type, value);
  if (words === null) return OFF;
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
