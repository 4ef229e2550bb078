// How single values stand in the snapshot document, and the shapes that they are read by.

import * as v from "valibot";

import {
  type Duration,
  duration,
  fromRfc3339,
  type Instant,
  toRfc3339,
  type Watched,
  watched,
} from "../model/time.ts";

/** Times keep their nanoseconds, so that a plan from the document is the plan of the node. */
export const timeText = (at: Instant): string => toRfc3339(at);
export const timeTextOrNull = (at: Instant | null): string | null =>
  at === null ? null : toRfc3339(at);

const isInteger = (value: unknown): value is number | bigint =>
  typeof value === "bigint" || Number.isSafeInteger(value);

/** An integer of any size. */
const integer = v.pipe(
  v.custom<number | bigint>(isInteger, "an integer is expected"),
  v.transform((value) => BigInt(value)),
);

export const bytesField = v.pipe(
  integer,
  v.check((value) => value >= 0n && value < 2n ** 64n, "a size from 0 to 2^64-1 is expected"),
);
export const countField = v.pipe(v.number(), v.safeInteger());
export const timeField = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }): Instant => {
    const at = fromRfc3339(dataset.value);
    if (at !== null) return at;
    addIssue({ message: "a time like 2026-01-31T12:00:00Z is expected" });
    return NEVER;
  }),
);
const int64 = v.pipe(
  integer,
  v.check((value) => BigInt.asIntN(64, value) === value, "nanoseconds within 64 bits are expected"),
);
export const durationField = v.pipe(
  int64,
  v.transform((ns): Duration => duration(ns)),
);
export const watchedField = v.pipe(
  int64,
  v.transform((ns): Watched => watched(ns)),
);
export const textsField = v.array(v.string());

/** A list in which each key stands once, as a map. */
export function mapField<Entry extends v.GenericSchema, Key extends string, Value>(
  entry: Entry,
  split: (entry: v.InferOutput<Entry>) => readonly [Key, Value],
) {
  return v.pipe(
    v.array(entry),
    v.rawTransform(({ dataset, addIssue, NEVER }): ReadonlyMap<Key, Value> => {
      const entries = dataset.value.map(split);
      const map = new Map(entries);
      if (map.size === entries.length) return map;
      addIssue({ message: "an entry stands twice" });
      return NEVER;
    }),
  );
}
