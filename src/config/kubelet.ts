/** What crigc adopts of the kubelet: a KubeletConfiguration as its own file, and thresholds above those of the node's kubelet. */
import type { Amount, Signal, Threshold } from "../model/limits.ts";
import type { KubeletSetting } from "../model/ports.ts";
import { isMap } from "../model/values.ts";
import type { Entry } from "./document.ts";
import {
  DISK_SIGNALS,
  isDiskSignal,
  isKnownSignal,
  splitStatements,
  thresholdsOf,
} from "./eviction.ts";
import { fieldNames, fieldOf, isFieldName } from "./fields.ts";
import { defaultOf, type FlagText, type Settings, SettingsBuilder } from "./settings.ts";
import { formatQuantity, parseDuration } from "./units.ts";

const ADOPTED: readonly string[] = fieldNames.filter((name) => fieldOf(name).kubelet === true);

/** The entries of a KubeletConfiguration that crigc adopts, as the kubelet reads them, with its zero and missing values. */
export function fromKubelet(
  path: string,
  entries: readonly Entry[],
): { readonly entries: readonly Entry[]; readonly warnings: readonly string[] } {
  const valueOf = (name: string): unknown => entries.find((it) => it.name === name)?.value;
  const mergesDefaults = valueOf("mergeDefaultEvictionSettings") === true;
  const adopted = entries
    .filter(({ name, value }) => ADOPTED.includes(name) && value !== null && value !== "")
    .map((entry) => ({ ...entry, value: asRead(entry, mergesDefaults) }));
  if (valueOf("imageGCHighThresholdPercent") !== 100) return { entries: adopted, warnings: [] };
  // A kubelet alongside crigc should have 100, which must not turn off crigc's own collection.
  const low = valueOf("imageGCLowThresholdPercent");
  const lowIsAbove =
    typeof low === "number" && low >= Number(defaultOf("imageGCHighThresholdPercent"));
  const dropped = [
    "imageGCHighThresholdPercent",
    ...(lowIsAbove ? ["imageGCLowThresholdPercent"] : []),
  ];
  return {
    entries: adopted.filter(({ name }) => !dropped.includes(name)),
    warnings: [
      `${path}: imageGCHighThresholdPercent is 100, which turns off the kubelet's image GC; crigc does not adopt ${dropped.join(" and ")}: set the threshold by flag, variable or drop-in`,
    ],
  };
}

function asRead({ name, value }: Entry, mergesDefaults: boolean): unknown {
  if (!isFieldName(name)) return value;
  const { type, default: usual = "" } = fieldOf(name);
  // In the kubelet's file, a duration of zero counts as missing.
  if (type.kind === "duration" && parseDuration(String(value)) === 0n) return usual;
  if (type.kind !== "statements" || !isMap(value)) return value;
  const ours = Object.entries(value).filter(
    ([signal]) => isDiskSignal(signal) || !isKnownSignal(signal),
  );
  const isMerged = mergesDefaults && name === "evictionHard";
  return { ...(isMerged ? splitStatements(usual, "<") : {}), ...Object.fromEntries(ours) };
}

/** The settings of this node's kubelet in flag syntax; empty for a kubelet with its defaults. */
export interface KubeletOnNode {
  readonly settings: readonly KubeletSetting[];
}

/** Percent of the filesystem between crigc's threshold and the kubelet's. */
const MARGIN_PERCENT = 5;
/** 100% would turn off the threshold. */
const PERCENT_MAX = 99;
/** Minimum margin for thresholds in bytes, besides a quarter: what a fast disk writes in seconds. */
const MARGIN_BYTES = 1024n ** 3n;
const MARGIN_INODES = 10_000n;

/**
 * Puts the default thresholds above the kubelet's, so that crigc frees space before it evicts pods. Leaves thresholds
 * that are set, and those of `compat: kubelet`.
 */
export function aboveKubelet(written: Settings, kubelet: KubeletOnNode | null): Settings {
  const { values, sources } = written;
  if (kubelet === null || sources.evictionHard.kind !== "default" || values.compat === "kubelet")
    return written;
  const eviction = kubelet.settings.filter(({ field }) => field.startsWith("eviction"));
  const theirs = thresholdsOfKubelet(eviction);
  const hard = DISK_SIGNALS.flatMap((signal): readonly (readonly [string, string])[] => {
    const text = aboveAll(signal, theirs) ?? values.evictionHard[signal];
    return text === undefined ? [] : [[signal, text]];
  });
  const places = [...new Set(eviction.map(({ source }) => source))].join(", ");
  const from = [`above the kubelet's (${places === "" ? "its defaults" : places})`];
  return {
    values: { ...values, evictionHard: Object.fromEntries(hard) },
    sources: { ...sources, evictionHard: { kind: "kubelet", from } },
  };
}

/** Hard and soft thresholds. Invalid settings count as the kubelet's defaults. */
function thresholdsOfKubelet(settings: readonly KubeletSetting[]): readonly Threshold[] {
  const flags = settings.flatMap(({ field, source, text }): readonly FlagText[] =>
    isFieldName(field) ? [{ name: field, written: source, text }] : [],
  );
  const theirs = new SettingsBuilder();
  theirs.addFlags(flags);
  const { values } = (theirs.issues.length > 0 ? new SettingsBuilder() : theirs).settings();
  return thresholdsOf({ ...values, evictionMinimumReclaim: {} });
}

/** Percent and bytes cannot be compared without the disk: then the kubelet's hard threshold counts. */
function aboveAll(signal: Signal, theirs: readonly Threshold[]): string | null {
  const amounts = theirs.filter((it) => it.signal === signal).map(({ amount }) => amount);
  const [first] = amounts;
  if (first === undefined) return null;
  const comparable = amounts.filter(({ kind }) => kind === first.kind);
  if (first.kind === "fraction") {
    const most = Math.max(...comparable.map(hundredthsOfPercent)) / 100;
    return `${Math.min(PERCENT_MAX, most + MARGIN_PERCENT)}%`;
  }
  const most = comparable.reduce(
    (largest, { value }) => (value > largest ? BigInt(value) : largest),
    0n,
  );
  const margin = signal.endsWith(".inodesFree") ? MARGIN_INODES : MARGIN_BYTES;
  return formatQuantity(most + (most / 4n > margin ? most / 4n : margin));
}

/** Whole, because a float32 share is not exactly what was written. */
const hundredthsOfPercent = ({ value }: Amount): number => Math.round(Number(value) * 10_000);
