/** The layer of one configuration file: each entry, validated against the table. */
import * as v from "valibot";

import type { ConfigIssue } from "../../model/errors.ts";
import { isMap } from "../../model/values.ts";
import { type FieldName, fieldNames, fieldOf, isFieldName } from "../fields.ts";
import { described } from "../value/described.ts";
import { expected, fileSchema } from "../value/value.ts";
import type { Entry } from "./document.ts";
import { suggestion } from "./nearest.ts";
import { type Layer, type Place, type Setting, valueIssue } from "./setting.ts";

export interface FileEntries {
  readonly path: string;
  readonly kind: "file" | "drop-in";
  readonly entries: readonly Entry[];
}

/** More issues do not help, and each may search for a suggestion. */
const ISSUES_MAX = 50;

export function fileLayer(file: FileEntries): Layer {
  const settings: Setting[] = [];
  const issues: ConfigIssue[] = [];
  for (const [index, entry] of file.entries.entries()) {
    if (issues.length === ISSUES_MAX) {
      const rest = file.entries.length - index;
      const message = `${ISSUES_MAX} invalid fields, ${rest} more not checked; is this a configuration file?`;
      issues.push({ source: file.path, text: "", message });
      break;
    }
    const place: Place = { kind: file.kind, at: `${file.path}:${entry.line}` };
    const name = entry.name;
    if (!isFieldName(name) || fieldOf(name).outsideFiles === true) {
      issues.push(unknownField(name, place, entry.value));
      continue;
    }
    const read = readEntry(name, place, entry.value);
    if ("message" in read) issues.push(read);
    else settings.push(read);
  }
  return { settings, issues, warnings: [] };
}

export function readEntry(name: FieldName, place: Place, value: unknown): Setting | ConfigIssue {
  if (value === null) return { name, place, change: { kind: "reset" } };
  const { type } = fieldOf(name);
  // Otherwise a template with an unset variable would silently drop its pattern, as with the flag.
  if (name === "keep" && value === "")
    return valueIssue({ name, place, text: '""', message: emptyKeep });
  // A drop-in removes a signal with null, like a merge patch.
  const removed =
    type.kind === "statements" && place.kind === "drop-in" && isMap(value)
      ? Object.keys(value).filter((signal) => value[signal] === null)
      : [];
  const kept = isMap(value) && removed.length > 0 ? without(value, removed) : value;
  const result = v.safeParse(fileSchema(type), kept);
  if (result.success)
    return { name, place, change: { kind: "set", value: result.output, removed } };
  return valueIssue({ name, place, text: described(value), message: result.issues[0].message });
}

const emptyKeep = `the value is empty; expected ${expected(fieldOf("keep").type)}, or leave the field out`;

const without = (
  map: Readonly<Record<string, unknown>>,
  removed: readonly string[],
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !removed.includes(key)));

function unknownField(name: string, place: Place, value: unknown): ConfigIssue {
  const inner = fieldNames.filter((it) => it.startsWith(`${name}.`));
  if (inner.length > 0) {
    const message = `${name}: ${described(value)} is not a map; expected one of ${inner.join(", ")} in it`;
    return { source: place.at, text: described(value), message };
  }
  const known = fieldNames.filter((it) => fieldOf(it).outsideFiles !== true);
  const message = isFieldName(name)
    ? `${name} cannot be set in a configuration file; use the flag or the environment variable`
    : `unknown field ${described(name)}${suggestion(name, known) || "; crigc config lists the fields"}`;
  return { source: place.at, text: name, message };
}
