/** Eviction thresholds, by the rules of the kubelet's parser: signals, amounts, grace periods, minimum reclaim. */
import type { Amount, Signal, Threshold } from "../model/limits.ts";
import { type Duration, duration } from "../model/time.ts";
import { parseDuration, parsePercentage, parseQuantity } from "./units.ts";

export type StatementKind = "threshold" | "grace" | "reclaim";
/** As written, by signal. */
export type Statements = Readonly<Record<string, string>>;

export const DISK_SIGNALS: readonly Signal[] = [
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
];
/** Signals of the kubelet that are not about disks. */
const OTHER_SIGNALS = ["memory.available", "allocatableMemory.available", "pid.available"];

export const isDiskSignal = (signal: string): signal is Signal =>
  DISK_SIGNALS.some((disk) => disk === signal);

export const isKnownSignal = (signal: string): boolean =>
  isDiskSignal(signal) || OTHER_SIGNALS.includes(signal);

export const operatorOf = (kind: StatementKind): "<" | "=" => (kind === "threshold" ? "<" : "=");

/** Splits `signal<value,signal<value` (or with `=`) like the kubelet: skips empty items, the last of two wins. */
export function splitStatements(text: string, operator: "<" | "="): Statements | null {
  const items = text.split(",").filter((item) => item !== "");
  if (items.some((item) => !item.includes(operator))) return null;
  const halves = items.map((item) => [item, item.indexOf(operator)] as const);
  return Object.fromEntries(
    halves.map(([item, at]) => [item.slice(0, at).trim(), item.slice(at + 1).trim()]),
  );
}

/** What is invalid in one statement, and what to write; `null`: nothing. */
export function statementFault(kind: StatementKind, signal: string, text: string): string | null {
  if (!isKnownSignal(signal))
    return `unknown signal ${JSON.stringify(signal)}: use ${DISK_SIGNALS.join(", ")}`;
  if (kind !== "grace" && lacksUnit(signal, text))
    return `missing unit in ${JSON.stringify(text)} for ${signal}: ${text}% or ${text}Gi?`;
  const { isValid, name, use } = STATEMENTS[kind];
  return isValid(text) ? null : `invalid ${name} ${JSON.stringify(text)} for ${signal}: use ${use}`;
}

/** Values that turn a threshold off. */
const DROPPED: readonly string[] = ["0%", "100%"];

const STATEMENTS = {
  threshold: {
    isValid: (text: string) => DROPPED.includes(text) || thresholdAmount(text) !== null,
    name: "threshold",
    use: "a quantity above 0 such as 10Gi, or a percentage from 0% to 100%",
  },
  grace: {
    isValid: (text: string) => graceOf(text) !== null,
    name: "grace period",
    use: "a duration of 0s or more such as 1m30s",
  },
  reclaim: {
    isValid: (text: string) => reclaimAmount(text) !== null,
    name: "minimum reclaim",
    use: "a quantity of 0 or more such as 2Gi, or a percentage above 0%",
  },
} as const;

/** The kubelet reads `imagefs.available<15` as 15 bytes, which nobody means. */
const PLAIN_BYTES_MIN = 1024 * 1024;

const lacksUnit = (signal: string, text: string): boolean =>
  signal.endsWith(".available") &&
  /^\+?(?:\d+\.?\d*|\.\d+)$/.test(text) &&
  Number(text) !== 0 &&
  Number(text) < PLAIN_BYTES_MIN;

export interface ThresholdSettings {
  readonly evictionHard: Statements;
  readonly evictionSoft: Statements;
  readonly evictionSoftGracePeriod: Statements;
  readonly evictionMinimumReclaim: Statements;
}

/** Signals of the soft thresholds without a grace period; the caller rejects them. */
export const withoutGrace = (settings: ThresholdSettings): readonly string[] =>
  [...DISK_SIGNALS, ...OTHER_SIGNALS].filter(
    (signal) =>
      isInForce(settings.evictionSoft, signal) &&
      settings.evictionSoftGracePeriod[signal] === undefined,
  );

/** Why crigc, like the kubelet's disk management, ignores a signal that may be configured; `null`: it obeys it. */
export function whyIgnored(signal: string): string | null {
  if (OTHER_SIGNALS.includes(signal))
    return "is not a disk signal; crigc ignores it and leaves it to the kubelet";
  if (!signal.startsWith("containerfs.")) return null;
  return "has no threshold of its own; crigc ignores it and, like the kubelet, uses that of imagefs or nodefs";
}

const isInForce = (statements: Statements, signal: string): boolean =>
  !DROPPED.includes(statements[signal] ?? "0%");

/** Thresholds on disk signals, hard before soft, in the order of `DISK_SIGNALS`. Expects checked statements. */
export function thresholdsOf(settings: ThresholdSettings): readonly Threshold[] {
  const { evictionHard, evictionSoft, evictionSoftGracePeriod, evictionMinimumReclaim } = settings;
  const built = (from: Statements, graceOfSignal: (signal: Signal) => Duration | null) =>
    DISK_SIGNALS.filter((signal) => isInForce(from, signal)).flatMap((signal): Threshold[] => {
      const amount = thresholdAmount(from[signal] ?? "");
      if (amount === null) return [];
      const minimumReclaim = reclaimAmount(evictionMinimumReclaim[signal] ?? "");
      return [{ signal, amount, grace: graceOfSignal(signal) ?? duration(0n), minimumReclaim }];
    });
  return [
    ...built(evictionHard, () => null),
    ...built(evictionSoft, (signal) => graceOf(evictionSoftGracePeriod[signal] ?? "")),
  ];
}

function amountOf(text: string): Amount | null {
  if (!text.endsWith("%")) {
    const value = parseQuantity(text);
    return value === null ? null : { kind: "quantity", value };
  }
  const value = parsePercentage(text);
  return value === null ? null : { kind: "fraction", value };
}

function thresholdAmount(text: string): Amount | null {
  const amount = amountOf(text);
  if (amount?.kind === "quantity") return amount.value > 0n ? amount : null;
  return amount === null || amount.value < 0 || amount.value > 1 ? null : amount;
}

function reclaimAmount(text: string): Amount | null {
  const amount = amountOf(text);
  if (amount?.kind === "quantity") return amount.value >= 0n ? amount : null;
  return amount === null || amount.value <= 0 || amount.value === Infinity ? null : amount;
}

function graceOf(text: string): Duration | null {
  const span = parseDuration(text);
  return span === null || span < 0n ? null : span;
}
