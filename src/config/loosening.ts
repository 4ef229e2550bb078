/**
 * Finds what a reloaded configuration would keep less than the one in force, because a file vanished, was truncated, or
 * keeps less.
 */
import type { Config } from "./config.ts";
import { type FieldValue, isList } from "./field.ts";
import { type FieldName, fieldNames, fieldOf, namedInFull } from "./fields.ts";
import type { Sourced } from "./source/merge.ts";
import { shownText } from "./value/printed.ts";

export interface Reading {
  readonly config: Config;
  readonly text: (path: string) => string | null;
}

/** One sentence per finding; empty: the change may be loaded without SIGHUP. */
export function loosenings(inForce: Reading, read: Reading): readonly string[] {
  const before = inForce.config;
  const after = read.config;
  const gone = before.files.filter((path) => !after.files.includes(path));
  const changed = fieldNames.filter((name) => textOf(before, name) !== textOf(after, name));
  return [
    ...gone.map((path) => `${path} no longer exists`),
    ...(changed.length === 0
      ? []
      : before.files.filter((path) => isCutOff(path, inForce, read))
    ).map((path) => `${path} looks truncated`),
    ...changed.flatMap((name) => loosened(name, before, after)),
  ];
}

/** Also if its last line is cut: `maxImages: 1` may be half of `maxImages: 100`. */
function isCutOff(path: string, inForce: Reading, read: Reading): boolean {
  const before = inForce.text(path);
  const after = read.text(path);
  if (before === null || after === null || before === after) return false;
  return before.startsWith(after) || (before.endsWith("\n") && !after.endsWith("\n"));
}

type Looser = (before: FieldValue, after: FieldValue) => boolean;

const smaller: Looser = (before, after) => numberOf(after) < numberOf(before);
/** For a limit that is off. */
const smallerOrOn: Looser = (before, after) =>
  !isOff(after) && (isOff(before) || numberOf(after) < numberOf(before));
const never: Looser = () => false;

const isOff = (value: FieldValue): boolean => value === null || numberOf(value) <= 0;
const numberOf = (value: FieldValue): number =>
  typeof value === "bigint" || typeof value === "number" ? Number(value) : 0;

/** Images kept by name or number: fewer of them wait for SIGHUP, whatever the source. */
const KEEPING: Partial<Record<FieldName, Looser>> = {
  keep: (before, after) => lost(before, after).length > 0,
  podInfraContainerImage: (before, after) => lost(before, after).length > 0,
  keepDir: () => true,
  keepLoaded: (before) => before === true,
  keepPerRepository: smaller,
};

const lost = (before: FieldValue, after: FieldValue): readonly string[] =>
  isList(before) ? before.filter((text) => !isList(after) || !after.includes(text)) : [];

/** Whether a field that no file sets any more leads to more removals; other fields count if they change. */
const LOOSER: Partial<Record<FieldName, Looser>> = {
  imageGCHighThresholdPercent: smaller,
  imageGCLowThresholdPercent: smaller,
  imageMinimumGCAge: smaller,
  imageMaximumGCAge: smallerOrOn,
  imageGCInodeHighThresholdPercent: smallerOrOn,
  imageGCInodeLowThresholdPercent: smallerOrOn,
  imageStoreBudget: smallerOrOn,
  maxImages: smallerOrOn,
  minimumContainerTTLDuration: smaller,
  deadPodTTL: smaller,
  bootGrace: smaller,
  collectForeign: (_, after) => after === true,
  whenFutile: (_, after) => after === "collect",
  evictionSoft: never,
  evictionMinimumReclaim: never,
  evictionPressureTransitionPeriod: never,
  maxRemovalsPerPass: never,
  removalInterval: never,
  imageGCPeriod: never,
  imageCachePeriod: never,
  containerGCPeriod: never,
  pressurePeriod: never,
  metricsBindAddress: never,
  eventHook: never,
  "logging.format": never,
  "logging.verbosity": never,
};

function loosened(name: FieldName, before: Config, after: Config): readonly string[] {
  const was = before.values[name];
  const is = after.values[name];
  const keeping = KEEPING[name];
  const isLooser =
    keeping === undefined
      ? isNoLongerSet(was, is, before) && (LOOSER[name]?.(was.value, is.value) ?? true)
      : keeping(was.value, is.value);
  if (!isLooser) return [];
  const missing = lost(was.value, is.value);
  return [
    missing.length > 0
      ? `${namedInFull(name)} loses ${missing.join(", ")}`
      : `${namedInFull(name)} changes from ${textOf(before, name)} to ${textOf(after, name)}`,
  ];
}

/** The value came from a file, and now from a lower source. A value that a file sets explicitly is intended. */
function isNoLongerSet(was: Sourced, is: Sourced, { files }: Config): boolean {
  if (was.source !== "file" && was.source !== "drop-in") return false;
  if (is.source === "default") return true;
  const place = fileOf(was);
  const now = fileOf(is);
  return now !== place && files.indexOf(now) < files.indexOf(place) && files.includes(now);
}

const fileOf = ({ from }: Sourced): string => (from.at(-1) ?? "").replace(/:\d+$/, "");

const textOf = ({ values }: Config, name: FieldName): string =>
  shownText(fieldOf(name).type, values[name].value);
