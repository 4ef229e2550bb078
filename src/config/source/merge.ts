/** Merges the sources, from defaults to flags, and records the source of each value. */

import { type Field, type FieldValue, isList, isStatements } from "../field.ts";
import { type FieldName, fieldNames, fieldOf, type Values } from "../fields.ts";
import type { Statements } from "../value/eviction.ts";
import { parseText } from "../value/value.ts";
import type { Setting, SourceKind } from "./setting.ts";

export interface Sourced {
  readonly value: FieldValue;
  /** `kubelet`: a default derived from this node's kubelet. */
  readonly source: SourceKind | "kubelet";
  /** Where it was set: for lists and maps that add up, every place; empty for a default. */
  readonly from: readonly string[];
}

export type Merged = Readonly<Record<FieldName, Sourced>>;

/** `settings` from the lowest to the highest source. */
export function merged(settings: readonly Setting[]): Merged {
  const values = new Map<FieldName, Sourced>(fieldNames.map((name) => [name, defaulted(name)]));
  for (const setting of settings) {
    const before = values.get(setting.name) ?? defaulted(setting.name);
    values.set(setting.name, overlay(before, setting));
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name was put in above
  return Object.fromEntries(values) as unknown as Merged;
}

const defaulted = (name: FieldName): Sourced => ({
  value: defaultOf(fieldOf(name)),
  source: "default",
  from: [],
});

/** The table's default, parsed like a flag. */
export function defaultOf(field: Field): FieldValue {
  const parsed = parseText(field.type, field.default ?? "");
  return parsed.kind === "value" ? parsed.value : null;
}

function overlay(before: Sourced, { name, place, change }: Setting): Sourced {
  if (change.kind === "reset") return defaulted(name);
  const { kind } = fieldOf(name).type;
  if (kind === "list")
    return {
      value: [...new Set([...listed(before.value), ...listed(change.value)])],
      source: place.kind,
      from: [...before.from, place.at],
    };
  if (kind === "statements" && place.kind === "drop-in") {
    const patched = { ...mapped(before.value), ...mapped(change.value) };
    return {
      value: Object.fromEntries(
        Object.entries(patched).filter(([key]) => !change.removed.includes(key)),
      ),
      source: place.kind,
      from: [...before.from, place.at],
    };
  }
  return { value: change.value, source: place.kind, from: [place.at] };
}

const listed = (value: FieldValue): readonly string[] => (isList(value) ? value : []);

const mapped = (value: FieldValue): Statements => (isStatements(value) ? value : {});

/** The values without sources. Each was parsed by its own type, so the table's types hold. */
export const bareValues = (all: Merged): Values =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys are mapped one to one
  Object.fromEntries(fieldNames.map((name) => [name, all[name].value])) as unknown as Values;
