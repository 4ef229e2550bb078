/** Eviction thresholds, by the rules of the kubelet's parser: signals, amounts, grace periods, minimum reclaim. */
import type { Amount, Signal, Threshold } from "../../model/limits.ts";
import { type Duration, duration } from "../../model/time.ts";
import { parseDuration } from "./duration.ts";
import { parsePercentage } from "./percentage.ts";
import { parseQuantity } from "./quantity.ts";

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
const OTHER_SIGNALS: readonly string[] = [
  "memory.available",
  "allocatableMemory.available",
  "pid.available",
];

export const isDiskSignal = (signal: string): signal is Signal =>
  (DISK_SIGNALS as readonly string[]).includes(signal);

export const isKnownSignal = (signal: string): boolean =>
  isDiskSignal(signal) || OTHER_SIGNALS.includes(signal);

export const KNOWN_SIGNALS: readonly string[] = [...DISK_SIGNALS, ...OTHER_SIGNALS];

/** Values that turn a threshold off. */
const DROPPED: readonly string[] = ["0%", "100%"];

export function statementFault(kind: StatementKind, signal: string, text: string): string | null {
  if (!isKnownSignal(signal))
    return `unknown signal ${JSON.stringify(signal)}: use ${DISK_SIGNALS.join(", ")}`;
  const unit = kind === "grace" ? null : missingUnit(signal, text);
  if (unit !== null) return unit;
  const { isValid, name, use } = STATEMENTS[kind];
  return isValid(text) ? null : `invalid ${name} ${JSON.stringify(text)} for ${signal}: use ${use}`;
}

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

function missingUnit(signal: string, text: string): string | null {
  const isPlain = /^\+?(?:\d+\.?\d*|\.\d+)$/.test(text);
  if (!isPlain || !signal.endsWith(".available")) return null;
  if (Number(text) === 0 || Number(text) >= PLAIN_BYTES_MIN) return null;
  return `missing unit in ${JSON.stringify(text)} for ${signal}: ${text}% or ${text}Gi?`;
}

export interface ThresholdStatements {
  readonly hard: Statements;
  readonly soft: Statements;
  readonly grace: Statements;
  readonly reclaim: Statements;
}

export interface ThresholdsRead {
  readonly thresholds: readonly Threshold[];
  /** Soft thresholds without a grace period, on any signal; the caller rejects them. */
  readonly withoutGrace: readonly string[];
  /** Configured signals that crigc ignores. */
  readonly notOurs: readonly string[];
}

/** Thresholds on disk signals, hard before soft, in the order of `DISK_SIGNALS`. Expects checked statements. */
export function thresholdsOf(statements: ThresholdStatements): ThresholdsRead {
  const { hard, soft, grace, reclaim } = statements;
  const inForce = (from: Statements): readonly string[] =>
    KNOWN_SIGNALS.filter((signal) => !DROPPED.includes(from[signal] ?? "0%"));
  const built = (from: Statements, graceOfSignal: (signal: string) => Duration): Threshold[] =>
    inForce(from)
      .filter(isDiskSignal)
      .flatMap((signal) => {
        const amount = thresholdAmount(from[signal] ?? "");
        if (amount === null) return [];
        const minimumReclaim = reclaimAmount(reclaim[signal] ?? "");
        return [{ signal, amount, grace: graceOfSignal(signal), minimumReclaim }];
      });
  const withGrace = (signal: string): Duration => graceOf(grace[signal] ?? "") ?? duration(0n);
  return {
    thresholds: [...built(hard, () => duration(0n)), ...built(soft, withGrace)],
    withoutGrace: inForce(soft).filter((signal) => grace[signal] === undefined),
    notOurs: OTHER_SIGNALS.filter((signal) =>
      [hard, soft, grace, reclaim].some((each) => each[signal] !== undefined),
    ),
  };
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

/** Splits `signal<value,signal<value` (or with `=`) like the kubelet: skips empty items, the last of two wins. */
export function splitStatements(text: string, operator: "<" | "="): Statements | null {
  const statements = new Map<string, string>();
  for (const item of text.split(",")) {
    if (item === "") continue;
    const at = item.indexOf(operator);
    if (at < 0) return null;
    statements.set(item.slice(0, at).trim(), item.slice(at + 1).trim());
  }
  return Object.fromEntries(statements);
}
