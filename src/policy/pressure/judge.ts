/** Judges disk pressure: which thresholds are met or due, what may be reclaimed for them, and the target. */

import type { Amount, Compat, PressureLimits, Signal, Threshold } from "../../model/limits.ts";
import type { EvictionMark, ImageTarget } from "../../model/plan.ts";
import type { Filesystem, FilesystemRole } from "../../model/snapshot.ts";
import { type Duration, duration, toMs } from "../../model/time.ts";
import {
  filesystemsOf,
  type Reclaim,
  reclaimFor,
  roleOf,
  type Topology,
  topologyOf,
} from "./topology.ts";

/** State from one check to the next. Instants are readings of the boot clock, which does not jump. */
export interface PressureState {
  /** When each threshold that is met was first met, by `keyOf`. */
  readonly firstMet: ReadonlyMap<string, Duration>;
  /** Thresholds that were met for their grace period; they end only with their minimum reclaim. */
  readonly due: ReadonlySet<string>;
  readonly lastMet: Duration | null;
}

export const noPressure: PressureState = { firstMet: new Map(), due: new Set(), lastMet: null };

/** A threshold that is met on one filesystem. */
export interface MetThreshold {
  readonly threshold: Threshold;
  readonly filesystem: Filesystem;
  /** Available bytes or inodes. */
  readonly available: bigint;
  /** Met below this. */
  readonly limit: bigint;
  /** Ended at or above this: the limit plus the minimum reclaim. */
  readonly relieved: bigint;
  readonly metFor: Duration;
}

export interface PressureVerdict {
  readonly state: PressureState;
  readonly met: readonly MetThreshold[];
  /** Met for at least the grace period, so they need action. */
  readonly due: readonly MetThreshold[];
  /** Whether disk pressure is reported: met now, or less than the transition period ago. */
  readonly condition: boolean;
  /** What may be removed for all thresholds that are due. */
  readonly reclaim: Reclaim;
  /** When another threshold could become due at the earliest; Infinity if none can. */
  readonly soonestCrossingMs: number;
  /** Where image removal may stop; only for signals that allow removing images. */
  readonly targets: readonly ImageTarget[];
}

export interface PressureInput {
  readonly limits: PressureLimits;
  readonly compat: Compat;
  readonly filesystems: readonly Filesystem[];
  readonly state: PressureState;
  readonly uptime: Duration;
}

/** One check. Pure: the same input gives the same verdict. */
export function judgePressure(input: PressureInput): PressureVerdict {
  const { filesystems, state, uptime, compat } = input;
  const topology = topologyOf(filesystems);
  const thresholds = effectiveThresholds(input.limits.thresholds, topology);
  const met = thresholds.flatMap((threshold) => meets(threshold, input));
  const firstMet = new Map(met.map((one) => [keyOf(one), duration(uptime - one.metFor)]));
  const due = met.filter((one) => one.metFor >= one.threshold.grace);
  const lastMet = met.length > 0 ? uptime : state.lastMet;
  const reclaims = due.map((one) => reclaimFor(one.threshold.signal, topology, compat));
  return {
    state: { firstMet, due: new Set(due.map(keyOf)), lastMet },
    met,
    due,
    condition:
      lastMet !== null && (met.length > 0 || uptime - lastMet < input.limits.transitionPeriod),
    reclaim: {
      containers: reclaims.some((one) => one.containers),
      images: reclaims.some((one) => one.images),
      logs: reclaims.some((one) => one.logs),
    },
    soonestCrossingMs: soonestCrossingMs(input, thresholds, met),
    targets: due.filter((_, index) => reclaims[index]?.images === true).map(targetOf),
  };
}

/** The thresholds on bytes of a filesystem whose pressure images can relieve; none with `compat: kubelet`. */
export function evictionMarks(
  filesystem: Filesystem,
  { filesystems, limits, compat }: Pick<PressureInput, "filesystems" | "limits" | "compat">,
): readonly EvictionMark[] {
  if (compat === "kubelet" || filesystem.capacityBytes <= 0n) return [];
  const topology = topologyOf(filesystems);
  return limits.thresholds.flatMap(({ signal, amount }) => {
    const applies =
      signal.endsWith(".available") &&
      filesystem.roles.includes(roleOf(signal)) &&
      reclaimFor(signal, topology, compat).images;
    if (!applies) return [];
    const { capacityBytes, availableBytes } = filesystem;
    const limitBytes = resolveAmount(amount, capacityBytes);
    // Rounded, since a percentage is a float32 of the kubelet's.
    const usedPercent = Math.round(100 - (100 * Number(limitBytes)) / Number(capacityBytes));
    return [{ signal, limitBytes, usedPercent, met: availableBytes < limitBytes }];
  });
}

/**
 * Targets of thresholds that are met now, for a single pass without the agent's memory; none with `compat: kubelet`.
 * `soft`: the soft ones that count, by signal; `null`: all of them, without their grace period.
 */
export function metTargets(
  input: Pick<PressureInput, "filesystems" | "limits" | "compat">,
  soft: ReadonlySet<string> | null,
): readonly ImageTarget[] {
  if (input.compat === "kubelet") return [];
  const thresholds = input.limits.thresholds
    .filter(({ grace, signal }) => grace === 0n || soft === null || soft.has(signal))
    .map((threshold) => ({ ...threshold, grace: duration(0n) }));
  const limits = { ...input.limits, thresholds };
  const verdict = judgePressure({ ...input, limits, state: noPressure, uptime: duration(0n) });
  // Derived thresholds repeat one of the same device.
  return verdict.targets.filter(
    ({ trigger }) => trigger.kind !== "pressure" || roleOf(trigger.signal) !== "containerfs",
  );
}

/** The assumed maximum rate at which a disk fills. */
const FILL_BYTES_A_SECOND = 1024 ** 3;
const FILL_INODES_A_SECOND = 50_000;

/** When another threshold could become due. The kubelet's eviction manager has a fixed period. */
function soonestCrossingMs(
  input: PressureInput,
  thresholds: readonly Threshold[],
  met: readonly MetThreshold[],
): number {
  if (input.compat === "kubelet") return Infinity;
  const metBy = new Map(met.map((one) => [keyOf(one), one]));
  const waits = thresholds.flatMap((threshold) =>
    filesystemsOf(roleOf(threshold.signal), input.filesystems).flatMap((filesystem) => {
      const observed = observationOf(threshold.signal, filesystem);
      if (observed === null) return [];
      const one = metBy.get(keyOf({ threshold, filesystem }));
      if (one !== undefined) return one.metFor >= threshold.grace ? [] : [graceLeftMs(one)];
      const distance = observed.available - resolveAmount(threshold.amount, observed.capacity);
      const aSecond = threshold.signal.endsWith(".inodesFree")
        ? FILL_INODES_A_SECOND
        : FILL_BYTES_A_SECOND;
      return [Math.max(0, Math.ceil((Number(distance) * 1000) / aSecond))];
    }),
  );
  return Math.min(...waits);
}

const graceLeftMs = ({ threshold, metFor }: MetThreshold): number =>
  Math.ceil(toMs(duration(threshold.grace - metFor)));

/**
 * The thresholds in force. Those of `containerfs` are never set by the user: they copy the signal of the filesystem
 * with the writable layers.
 */
export function effectiveThresholds(
  thresholds: readonly Threshold[],
  topology: Topology,
): readonly Threshold[] {
  const own = thresholds.filter((threshold) => roleOf(threshold.signal) !== "containerfs");
  const source: FilesystemRole = topology === "dedicated" ? "imagefs" : "nodefs";
  const derived = own
    .filter((threshold) => roleOf(threshold.signal) === source)
    .map((threshold) => ({
      ...threshold,
      signal: containerSignal(threshold.signal),
    }));
  return [...own, ...derived];
}

const containerSignal = (signal: Signal): Signal =>
  signal.endsWith(".inodesFree") ? "containerfs.inodesFree" : "containerfs.available";

/** A quantity as it is; a fraction of the capacity as the kubelet computes it: float32 widened, product truncated. */
export function resolveAmount(amount: Amount, capacity: bigint): bigint {
  if (amount.kind === "quantity") return amount.value;
  return BigInt(Math.trunc(Number(capacity) * Math.fround(amount.value)));
}

export function keyOf(one: {
  readonly threshold: Threshold;
  readonly filesystem: Filesystem;
}): string {
  const { signal, amount, grace } = one.threshold;
  return `${signal}|${amount.kind}:${amount.value}|${grace}|${one.filesystem.device}`;
}

function meets(threshold: Threshold, input: PressureInput): readonly MetThreshold[] {
  return filesystemsOf(roleOf(threshold.signal), input.filesystems).flatMap((filesystem) => {
    const observed = observationOf(threshold.signal, filesystem);
    if (observed === null) return [];
    const limit = resolveAmount(threshold.amount, observed.capacity);
    const reclaim =
      threshold.minimumReclaim === null
        ? 0n
        : resolveAmount(threshold.minimumReclaim, observed.capacity);
    const relieved = limit + reclaim;
    const key = keyOf({ threshold, filesystem });
    const bound = input.state.due.has(key) ? relieved : limit;
    if (observed.available >= bound) return [];
    const first = input.state.firstMet.get(key) ?? input.uptime;
    const metFor = duration(input.uptime > first ? input.uptime - first : 0n);
    return [{ threshold, filesystem, available: observed.available, limit, relieved, metFor }];
  });
}

/** `null` if there is nothing to observe: no capacity, or a filesystem without an inode limit. */
function observationOf(
  signal: Signal,
  filesystem: Filesystem,
): { readonly available: bigint; readonly capacity: bigint } | null {
  const inodes = signal.endsWith(".inodesFree");
  const capacity = inodes ? filesystem.inodes : filesystem.capacityBytes;
  if (capacity <= 0n) return null;
  return { capacity, available: inodes ? filesystem.inodesFree : filesystem.availableBytes };
}

function targetOf(one: MetThreshold): ImageTarget {
  const { signal } = one.threshold;
  const common = {
    trigger: { kind: "pressure", signal },
    device: one.filesystem.device,
    path: one.filesystem.path,
  } as const;
  const wanted = one.relieved - one.available;
  return signal.endsWith(".inodesFree")
    ? {
        kind: "free-inodes",
        ...common,
        inodesFree: one.relieved,
        wantedInodes: wanted,
        relievedInodes: one.relieved,
      }
    : {
        kind: "available-bytes",
        ...common,
        availableBytes: one.relieved,
        wantedBytes: wanted,
        relievedBytes: one.relieved,
      };
}
