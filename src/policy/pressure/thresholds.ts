/** Judges disk pressure: which thresholds are met or due, what may be reclaimed for them, and the target. */

import type { Amount, PressureLimits, Signal, Threshold } from "../../model/limits.ts";
import type { EvictionMark, ImageTarget } from "../../model/plan.ts";
import type { Filesystem, FilesystemRole } from "../../model/snapshot.ts";
import { type Duration, duration } from "../../model/time.ts";
import { atLeastZero } from "../../model/values.ts";
import { spaceTarget } from "../space.ts";

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
  /** Where image removal may stop; only for signals that allow removing images. */
  readonly targets: readonly ImageTarget[];
}

export interface PressureInput {
  readonly limits: PressureLimits;
  readonly filesystems: readonly Filesystem[];
  readonly state: PressureState;
  readonly uptime: Duration;
}

/** One check. Pure: the same input gives the same verdict. */
export function judgePressure(input: PressureInput): PressureVerdict {
  const { filesystems, state, uptime } = input;
  const topology = topologyOf(filesystems);
  const thresholds = effectiveThresholds(input.limits.thresholds, topology);
  const met = metThresholds(thresholds, input);
  const firstMet = new Map(met.map((one) => [keyOf(one), duration(uptime - one.metFor)]));
  const due = met.filter((one) => one.metFor >= one.threshold.grace);
  const lastMet = met.length > 0 ? uptime : state.lastMet;
  const reclaims = due.map((one) => reclaimFor(one.threshold.signal, topology));
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
    targets: due.filter((_, index) => reclaims[index]?.images === true).map(targetOf),
  };
}

/** The thresholds on bytes of a filesystem whose pressure images can relieve. */
export function evictionMarks(
  filesystem: Filesystem,
  { filesystems, limits }: Pick<PressureInput, "filesystems" | "limits">,
): readonly EvictionMark[] {
  if (filesystem.capacityBytes <= 0n) return [];
  const topology = topologyOf(filesystems);
  return limits.thresholds.flatMap(({ signal, amount }) => {
    const applies =
      !isOfInodes(signal) &&
      filesystem.roles.includes(roleOf(signal)) &&
      reclaimFor(signal, topology).images;
    if (!applies) return [];
    const { capacityBytes, availableBytes } = filesystem;
    const limitBytes = resolveAmount(amount, capacityBytes);
    // Rounded, since a percentage is a float32 of the kubelet's.
    const usedPercent = Math.round(100 - (100 * Number(limitBytes)) / Number(capacityBytes));
    return [{ signal, limitBytes, usedPercent, met: availableBytes < limitBytes }];
  });
}

/** Targets of thresholds that are met now, the soft ones without their grace period, for a single pass. */
export function metTargets(
  input: Pick<PressureInput, "filesystems" | "limits">,
): readonly ImageTarget[] {
  const thresholds = input.limits.thresholds.map((threshold) => ({
    ...threshold,
    grace: duration(0n),
  }));
  const limits = { ...input.limits, thresholds };
  const verdict = judgePressure({ ...input, limits, state: noPressure, uptime: duration(0n) });
  // Derived thresholds repeat one of the same device.
  return verdict.targets.filter(
    ({ trigger }) => trigger.kind !== "pressure" || roleOf(trigger.signal) !== "containerfs",
  );
}

/**
 * The thresholds in force. Those of `containerfs` are never set by the user: they copy the signal of the filesystem
 * with the writable layers.
 */
export function effectiveThresholds(
  thresholds: readonly Threshold[],
  topology: Topology,
): readonly Threshold[] {
  const own = thresholds.filter(({ signal }) => roleOf(signal) !== "containerfs");
  const source: FilesystemRole = topology === "dedicated" ? "imagefs" : "nodefs";
  const derived = own
    .filter(({ signal }) => roleOf(signal) === source)
    .map((threshold): Threshold => ({
      ...threshold,
      signal: isOfInodes(threshold.signal) ? "containerfs.inodesFree" : "containerfs.available",
    }));
  return [...own, ...derived];
}

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

/** Every threshold on every filesystem with a capacity, and an inode limit for inodes. */
const metThresholds = (
  thresholds: readonly Threshold[],
  { filesystems, state, uptime }: PressureInput,
): readonly MetThreshold[] =>
  thresholds.flatMap((threshold) =>
    filesystemsOf(roleOf(threshold.signal), filesystems).flatMap((filesystem) => {
      const { signal, amount, minimumReclaim } = threshold;
      const inodes = isOfInodes(signal);
      const capacity = inodes ? filesystem.inodes : filesystem.capacityBytes;
      const available = inodes ? filesystem.inodesFree : filesystem.availableBytes;
      const limit = resolveAmount(amount, capacity);
      const relieved =
        limit + (minimumReclaim === null ? 0n : resolveAmount(minimumReclaim, capacity));
      const key = keyOf({ threshold, filesystem });
      if (capacity <= 0n || available >= (state.due.has(key) ? relieved : limit)) return [];
      const metFor = duration(atLeastZero(uptime - (state.firstMet.get(key) ?? uptime)));
      return [{ threshold, filesystem, available, limit, relieved, metFor }];
    }),
  );

function targetOf({ threshold, filesystem, available, relieved }: MetThreshold): ImageTarget {
  const { signal } = threshold;
  const trigger = { kind: "pressure", signal } as const;
  if (!isOfInodes(signal)) return spaceTarget(filesystem, { trigger, availableBytes: relieved });
  return {
    kind: "free-inodes",
    trigger,
    device: filesystem.device,
    path: filesystem.path,
    inodesFree: relieved,
    wantedInodes: relieved - available,
    relievedInodes: relieved,
  };
}

/**
 * `single`: images, containers and the node's own files on one device. `dedicated`: images and writable layers together
 * on their own device. `split`: images on their own device, writable layers with the node's own files or on a third
 * one.
 */
export type Topology = "single" | "dedicated" | "split";

/** What a signal lets the collector remove. */
export interface Reclaim {
  readonly containers: boolean;
  readonly images: boolean;
  /** Logs of deleted pods, which are on the node's own filesystem. */
  readonly logs: boolean;
}

/** Determined for every observation: disks are mounted and unmounted while agents run. */
export function topologyOf(filesystems: readonly Filesystem[]): Topology {
  const deviceOf = (role: FilesystemRole): string | undefined =>
    filesystems.find(({ roles }) => roles.includes(role))?.device;
  const image = deviceOf("imagefs");
  if (image === undefined) return "single";
  if ((deviceOf("containerfs") ?? image) !== image) return "split";
  return (deviceOf("nodefs") ?? image) === image ? "single" : "dedicated";
}

/**
 * The kubelet's table. With images on their own disk it has nothing for the node's filesystem, where crigc still
 * deletes orphaned logs.
 */
export function reclaimFor(signal: Signal, topology: Topology): Reclaim {
  const isOfNode = roleOf(signal) === "nodefs";
  const isOfImages = roleOf(signal) === "imagefs";
  const isSplit = topology === "split";
  const isSingle = topology === "single";
  return {
    containers: isSplit ? !isOfImages : isSingle || !isOfNode,
    images: isSplit ? isOfImages : isSingle || !isOfNode,
    logs: isSingle || isOfNode,
  };
}

const roleOf = (signal: Signal): FilesystemRole =>
  signal.startsWith("nodefs.")
    ? "nodefs"
    : signal.startsWith("imagefs.")
      ? "imagefs"
      : "containerfs";

const isOfInodes = (signal: Signal): boolean => signal.endsWith(".inodesFree");

/**
 * The filesystems that a signal refers to: every distinct device with the role. Writable layers are on the image
 * filesystem unless the runtime names another.
 */
export function filesystemsOf(
  role: FilesystemRole,
  filesystems: readonly Filesystem[],
): readonly Filesystem[] {
  const direct = filesystems.filter((filesystem) => filesystem.roles.includes(role));
  if (direct.length > 0 || role !== "containerfs") return direct;
  return filesystems.filter((filesystem) => filesystem.roles.includes("imagefs"));
}
