/** JSON documents: exact integers, RFC 3339 times, and one envelope for every kind. */

import { exactJson } from "../../model/exact-json.ts";
import type { Duration, Instant } from "../../model/time.ts";
import { toMs, toRfc3339 } from "../../model/time.ts";

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
  | "DiskUsage"
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

/** JSON text; `indent` 0 gives one line. */
export const toJson = (value: Json, indent = 0): string => exactJson(value, indent);

export const timeOf = (at: Instant | null): string | null => (at === null ? null : toRfc3339(at));

/** For fields that end in `Ms`. */
export const msOf = (span: Duration): number => toMs(span);
