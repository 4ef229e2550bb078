/** JSON documents: exact integers, RFC 3339 times, and one envelope for every kind. */

import type { Duration, Instant } from "../../model/time.ts";
import { toMs, toRfc3339 } from "../../model/time.ts";
import { MISLEADING } from "../terminal.ts";

/** What a document may hold: a bigint is written as an integer literal, and a field that is undefined is left out. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

export type DocumentKind =
  | "Plan"
  | "GcReport"
  | "Status"
  | "Explanation"
  | "ImageList"
  | "History"
  | "Audit"
  | "Snapshot"
  | "KeepRules"
  | "Doctor"
  | "Config"
  | "Version"
  | "Event";

/** A document of `kind`. Fields are only ever added to one. */
export const document = (kind: DocumentKind, body: JsonObject): JsonObject => ({
  apiVersion: "crigc/v1",
  kind,
  ...body,
});

/** A document as a command prints it: indented, with a newline at its end. */
export const printedJson = (value: Json): string => `${toJson(value, 2)}\n`;

/** JSON text; `indent` 0 gives one line. Characters that could mislead a terminal are escaped, so nothing is lost. */
export const toJson = (value: Json, indent = 0): string =>
  (JSON.stringify(value, (_field, held: unknown) => exact(held), indent) ?? "null").replace(
    MISLEADING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

export const timeOf = (at: Instant | null): string | null => (at === null ? null : toRfc3339(at));

/** For fields that end in `Ms`. */
export const msOf = (span: Duration): number => toMs(span);

declare global {
  interface JSON {
    /** Text that is written as it stands. lib.esnext does not know it yet. */
    rawJSON(text: string): unknown;
  }
}

function exact(held: unknown): unknown {
  if (typeof held === "bigint") return JSON.rawJSON(held.toString());
  if (held instanceof Map || held instanceof Set)
    throw new TypeError("a Map or Set reached a JSON document");
  return held;
}
