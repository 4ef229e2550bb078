/**
 * Default eviction thresholds on a node with a kubelet: above the kubelet's, so that crigc frees space before it evicts
 * pods.
 */
import type { Amount, Signal, Threshold } from "../../model/limits.ts";
import type { KubeletSetting } from "../../model/ports.ts";
import { isStatements } from "../field.ts";
import { isFieldName } from "../fields.ts";
import { flagLayer, type FlagText } from "../source/arguments.ts";
import { bareValues, type Merged, merged, type Sourced } from "../source/merge.ts";
import { DISK_SIGNALS, type Statements, thresholdsOf } from "../value/eviction.ts";
import { formatQuantity } from "../value/quantity.ts";

/** The settings of this node's kubelet in flag syntax; empty for a kubelet with its defaults. */
export interface KubeletOnNode {
  readonly settings: readonly KubeletSetting[];
}

/** Percent of the filesystem between crigc's threshold and the kubelet's. */
const MARGIN_PERCENT = 5;
/** Minimum margin for thresholds in bytes, besides a quarter: what a fast disk writes in seconds. */
const MARGIN_BYTES = 1024n ** 3n;
const MARGIN_INODES = 10_000n;

/** `written`, with thresholds above the kubelet's if none are set and `compat` is not `kubelet`. */
export function aboveKubelet(written: Merged, kubelet: KubeletOnNode | null): Merged {
  const { evictionHard, compat } = written;
  if (kubelet === null || evictionHard.source !== "default" || compat.value === "kubelet")
    return written;
  return { ...written, evictionHard: above(evictionHard, kubelet) };
}

function above(ours: Sourced, { settings }: KubeletOnNode): Sourced {
  const eviction = settings.filter(({ field }) => field.startsWith("eviction"));
  const from = [...new Set(eviction.map(({ source }) => source))];
  const theirs = thresholdsOfKubelet(eviction);
  const value = Object.fromEntries(
    DISK_SIGNALS.flatMap((signal): readonly (readonly [string, string])[] => {
      const own = isStatements(ours.value) ? ours.value[signal] : undefined;
      const text = aboveAll(signal, own, theirs);
      return text === null ? [] : [[signal, text]];
    }),
  );
  const where = from.length === 0 ? "its defaults" : from.join(", ");
  return { value, source: "kubelet", from: [`above the kubelet's (${where})`] };
}

/** Hard and soft thresholds. Invalid settings count as the kubelet's defaults. */
export function thresholdsOfKubelet(settings: KubeletOnNode["settings"]): readonly Threshold[] {
  const flags = settings.flatMap(({ field, source, text }): readonly FlagText[] =>
    isFieldName(field) && text !== "" ? [{ name: field, written: source, text }] : [],
  );
  const layer = flagLayer(flags);
  const values = bareValues(merged(layer.issues.length > 0 ? [] : layer.settings));
  return thresholdsOf({
    hard: values.evictionHard,
    soft: values.evictionSoft,
    grace: values.evictionSoftGracePeriod,
    reclaim: {} satisfies Statements,
  }).thresholds;
}

/** Percent and bytes cannot be compared without the disk: then the kubelet's hard threshold counts. */
function aboveAll(
  signal: Signal,
  own: string | undefined,
  theirs: readonly Threshold[],
): string | null {
  const amounts = theirs.filter((it) => it.signal === signal).map(({ amount }) => amount);
  const [first] = amounts;
  if (first === undefined) return own ?? null;
  if (first.kind === "quantity") {
    const largest = largestOf(amounts, "quantity");
    const margin = signal.endsWith(".inodesFree") ? MARGIN_INODES : MARGIN_BYTES;
    const quarter = largest / 4n;
    return formatQuantity(largest + (quarter > margin ? quarter : margin));
  }
  const percent = Number(largestOf(amounts, "fraction")) / PARTS_A_PERCENT + MARGIN_PERCENT;
  return `${Math.min(MOST_PERCENT, percent)}%`;
}

/** Fractions are compared in units of a hundredth of a percent. */
const PARTS_A_PERCENT = 100;
/** 100% would turn off the threshold. */
const MOST_PERCENT = 99;

function largestOf(amounts: readonly Amount[], kind: Amount["kind"]): bigint {
  const values = amounts
    .filter((amount) => amount.kind === kind)
    .map((amount) =>
      amount.kind === "quantity"
        ? amount.value
        : BigInt(Math.round(amount.value * 100 * PARTS_A_PERCENT)),
    );
  return values.reduce((most, value) => (value > most ? value : most), 0n);
}
