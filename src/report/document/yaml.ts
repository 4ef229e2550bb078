/** A document as YAML that YAML 1.1 and 1.2 read alike: `254:0`, `no` and times are strings, integers exact. */

import { type Json, type JsonObject, toJson } from "./json.ts";

export const printedYaml = (value: JsonObject): string => block(value, "");

function block(value: readonly Json[] | JsonObject, indent: string): string {
  const inner = `${indent}  `;
  if (isList(value))
    // The first line of an item follows the dash.
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

/** `null`: fits on one line. */
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

/** Words that either version reads as something other than a string. */
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf)$/i;

/** Plain if unambiguous, else as a JSON string, which is also a YAML string. */
const text = (value: string): string =>
  /^[a-z_][\w./-]*$/i.test(value) && !RESERVED.test(value) ? value : toJson(value);
