/**
 * Reads a KubeletConfiguration as the kubelet does, with its zero and missing values, and ignores fields that crigc does not
 * use.
 */

import { isMap } from "../../model/values.ts";
import { type FieldName, fieldOf, isFieldName } from "../fields.ts";
import type { Entry } from "../source/document.ts";
import { parseDuration } from "../value/duration.ts";
import { isDiskSignal, isKnownSignal, splitStatements } from "../value/eviction.ts";

export interface KubeletReading {
  readonly entries: readonly Entry[];
  readonly warnings: readonly string[];
}

/** The adopted entries, in crigc's own form. */
export function fromKubelet(path: string, entries: readonly Entry[]): KubeletReading {
  const mergesDefaults = entries.some(
    ({ name, value }) => name === "mergeDefaultEvictionSettings" && value === true,
  );
  const taken = entries
    .filter(({ name }) => isTakenOver(name))
    .filter(({ value }) => value !== null && value !== "")
    .map((entry) => ({ ...entry, value: asRead(entry, mergesDefaults) }));
  const high = taken.find(({ name }) => name === "imageGCHighThresholdPercent");
  if (high?.value !== 100) return { entries: taken, warnings: [] };
  return withoutSwitchedOff(path, taken);
}

const isTakenOver = (name: string): name is FieldName =>
  isFieldName(name) && fieldOf(name).kubelet === true;

function asRead(entry: Entry, mergesDefaults: boolean): unknown {
  if (!isFieldName(entry.name)) return entry.value;
  const field = fieldOf(entry.name);
  // In the kubelet's file, a duration of zero counts as missing.
  if (field.type.kind === "duration" && isZero(entry.value)) return field.default;
  if (field.type.kind !== "statements" || !isMap(entry.value)) return entry.value;
  const ours = Object.entries(entry.value).filter(
    ([signal]) => isDiskSignal(signal) || !isKnownSignal(signal),
  );
  const defaults =
    entry.name === "evictionHard" && mergesDefaults
      ? splitStatements(field.default ?? "", "<")
      : {};
  return { ...defaults, ...Object.fromEntries(ours) };
}

const isZero = (value: unknown): boolean =>
  value === 0 || (typeof value === "string" && parseDuration(value) === 0n);

/** A kubelet alongside crigc should have 100, which must not turn off crigc's own collection. */
function withoutSwitchedOff(path: string, entries: readonly Entry[]): KubeletReading {
  const defaultHigh = Number(fieldOf("imageGCHighThresholdPercent").default);
  const low = entries.find(({ name }) => name === "imageGCLowThresholdPercent")?.value;
  const lowIsAbove = typeof low === "number" && low >= defaultHigh;
  const dropped = [
    "imageGCHighThresholdPercent",
    ...(lowIsAbove ? ["imageGCLowThresholdPercent"] : []),
  ];
  return {
    entries: entries.filter(({ name }) => !dropped.includes(name)),
    warnings: [
      `${path}: imageGCHighThresholdPercent is 100, which turns off the kubelet's image GC; crigc does not adopt ${dropped.join(" and ")}: set the threshold by flag, variable or drop-in`,
    ],
  };
}
