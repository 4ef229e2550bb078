/** A document as YAML that parsers of YAML 1.1 and 1.2 read alike: `254:0`, `no` and times are text to both, and integers are exact. */

import { type Json, type JsonObject, toJson } from "./json.ts";

export const printedYaml = (value: JsonObject): string => block(value, "");

function block(value: readonly Json[] | JsonObject, indent: string): string {
  const inner = `${indent}  `;
  if (isList(value))
    // The first line of an item stands behind the dash.
    return value.map((item) => `${indent}- ${itemText(item, inner)}`).join("");
  return fieldsOf(value)
    .map(([name, field]) => `${indent}${text(name)}:${fieldText(field, inner)}`)
    .join("");
}

function itemText(value: Json, indent: string): string {
  const inner = innerOf(value);
  return inner === null ? `${scalar(value)}\n` : block(inner, indent).slice(indent.length);
}

function fieldText(value: Json, indent: string): string {
  const inner = innerOf(value);
  return inner === null ? ` ${scalar(value)}\n` : `\n${block(inner, indent)}`;
}

/** `null`: it stands on one line. */
function innerOf(value: Json): readonly Json[] | JsonObject | null {
  if (typeof value !== "object" || value === null) return null;
  if (Symbol.iterator in value) return isEmpty(value) ? null : [...value];
  return fieldsOf(value).length === 0 ? null : value;
}

const isList = (value: readonly Json[] | JsonObject): value is readonly Json[] =>
  Array.isArray(value);

const isEmpty = (items: Iterable<Json>): boolean => items[Symbol.iterator]().next().done === true;

const fieldsOf = (value: JsonObject): readonly (readonly [string, Json])[] =>
  Object.entries(value).flatMap(([name, field]) => (field === undefined ? [] : [[name, field]]));

const scalar = (value: Json): string => (typeof value === "string" ? text(value) : toJson(value));

/** Words that one of the versions takes for something else than text. */
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf)$/i;

/** Plain where nobody can misread it; else in the quotes and escapes of JSON, which are YAML's too. */
const text = (value: string): string =>
  /^[a-z_][\w./-]*$/i.test(value) && !RESERVED.test(value) ? value : toJson(value);
