// How values of the model stand in columns, and the shapes that rows are held against when they are read.

import type { Database } from "bun:sqlite";

import * as v from "valibot";

import { duration, instant, watched } from "../model/time.ts";

export type Cell = string | bigint | null;
export type Row = readonly Cell[];

export interface Query {
  readonly sql: string;
  readonly values?: Row;
}

/** Every row that a query gives, checked; throws `ValiError` for a row of another shape. */
export function rowsOf<Schema extends v.GenericSchema>(
  db: Database,
  query: Query,
  schema: Schema,
): readonly v.InferOutput<Schema>[] {
  // Nanoseconds exceed 2^53, so integers are read as bigint.
  const rows: readonly unknown[] = db
    .query(query.sql)
    .safeIntegers(true)
    .all(...(query.values ?? []));
  return rows.map((row) => v.parse(schema, row));
}

export const sameRow = (one: Row, other: Row): boolean =>
  one.length === other.length && one.every((cell, at) => cell === other[at]);

/** `?, ?, ?` for so many values. */
export const marks = (count: number): string => Array.from({ length: count }, () => "?").join(", ");

/** Sizes are unsigned numbers of 64 bits, columns are signed ones. */
export const bytesCell = (bytes: bigint): bigint => BigInt.asIntN(64, bytes);

export const instantColumn = v.pipe(v.bigint(), v.transform(instant));
export const durationColumn = v.pipe(v.bigint(), v.transform(duration));
export const watchedColumn = v.pipe(v.bigint(), v.transform(watched));
export const bytesColumn = v.pipe(
  v.bigint(),
  v.transform((cell) => BigInt.asUintN(64, cell)),
);
/** A number that is small by its nature. */
export const countColumn = v.pipe(
  v.bigint(),
  v.minValue(0n),
  v.maxValue(BigInt(Number.MAX_SAFE_INTEGER)),
  v.transform(Number),
);
export const flagColumn = v.pipe(
  v.picklist([0n, 1n]),
  v.transform((cell) => cell === 1n),
);
/** A list of texts, as JSON. */
export const textsColumn = v.pipe(v.string(), v.parseJson(), v.array(v.string()));
