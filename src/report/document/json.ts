/** JSON documents: exact integers, RFC 3339 times, and one envelope for every kind. */

import { exactJson } from "../../model/exact-json.ts";
import { type Instant, toRfc3339 } from "../../model/time.ts";

/** A JSON value: a bigint becomes an integer literal, and an undefined field is omitted. */
export type Json =
  null | boolean | number | bigint | string | readonly Json[] | LazyList | JsonObject;

/** A list whose items are created while written: all at once, those of a large node take more memory than its plan. */
export interface LazyList extends Iterable<Json> {
  toJSON(): readonly Json[];
}

export const lazily = <Item>(
  items: readonly Item[],
  make: (item: Item, index: number) => Json,
): LazyList => ({
  *[Symbol.iterator]() {
    for (const [index, item] of items.entries()) yield make(item, index);
  },
  toJSON: () => items.map(make),
});

export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

export type DocumentKind =
  | "Plan"
  | "GcReport"
  | "Status"
  | "Explanation"
  | "ImageList"
  | "DiskUsage"
  | "History"
  | "Audit"
  | "Snapshot"
  | "KeepRules"
  | "Doctor"
  | "Config"
  | "Version"
  | "Event";

/** These fields, in this order, as they are. */
export function picked<Value extends object, Name extends keyof Value>(
  value: Value,
  ...names: readonly Name[]
): Pick<Value, Name> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each name was put in
  return Object.fromEntries(names.map((name) => [name, value[name]])) as Pick<Value, Name>;
}

/** A document of `kind`. New versions only add fields. */
export const document = (kind: DocumentKind, body: JsonObject): JsonObject => ({
  apiVersion: "crigc/v1",
  kind,
  ...body,
});

/** A document as a command prints it: indented, with a final newline. */
export const printedJson = (value: Json): string => `${toJson(value, 2)}\n`;

const PIECE_LENGTH = 64 * 1024;

export function* printedPieces(value: Json): Generator<string> {
  let text = "";
  for (const part of partsOf(value, "\n")) {
    text += part;
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  yield `${text}\n`;
}

/** `end`: a line end and the indentation of the next line. */
function* partsOf(value: Json, end: string): Generator<string> {
  const inner = `${end}  `;
  if (isLazy(value)) {
    let before = "[";
    for (const item of value) {
      yield `${before}${inner}${wholeJson(item, inner)}`;
      before = ",";
    }
    yield before === "[" ? "[]" : `${end}]`;
  } else if (isObject(value)) {
    let before = "{";
    for (const [name, field] of Object.entries(value)) {
      if (field === undefined) continue;
      yield `${before}${inner}${toJson(name)}: `;
      yield* partsOf(field, inner);
      before = ",";
    }
    yield before === "{" ? "{}" : `${end}}`;
  } else yield wholeJson(value, end);
}

/** Line ends occur only between tokens: those in strings are escaped. */
const wholeJson = (value: Json, end: string): string => toJson(value, 2).replaceAll("\n", end);

const isLazy = (value: Json): value is LazyList =>
  typeof value === "object" && value !== null && "toJSON" in value;

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** JSON text; one line if `indent` is 0. */
export const toJson = (value: Json, indent = 0): string => exactJson(value, indent);

export const timeOf = (at: Instant | null): string | null => (at === null ? null : toRfc3339(at));
