/**
 * How much a pass removes: its targets, whether removing images can reach them at all, and after each removal whether it
 * goes on. Everything is judged on readings of the disks; nothing is learned from earlier passes.
 */

import { runtimeOf } from "../cri/runtimes.ts";
import type { ImageLimits, Thresholds } from "../model/limits.ts";
import type { DiskUsage, Futility, ImagePlan, ImageTarget } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { DiskReading, Filesystem, RuntimeInfo, Snapshot } from "../model/snapshot.ts";
import { atLeastZero, larger, smaller } from "../model/values.ts";
import { imageUseOf, inUseOf } from "./disk.ts";

/** A target on a filesystem, in bytes or in inodes. */
export type DiskTarget = Extract<ImageTarget, { readonly device: string }>;

// Targets

export interface DiskJudgement {
  readonly usage: readonly DiskUsage[];
  /** Filesystems without capacity, on which nothing is decided. */
  readonly blocks: readonly RemovalBlock[];
  /** Targets of the thresholds that are met. */
  readonly targets: readonly ImageTarget[];
}

/** Judges every filesystem that holds images by the thresholds on disk usage. */
export function judgeDisks(
  { filesystems }: Pick<Snapshot, "filesystems">,
  limits: Thresholds,
): DiskJudgement {
  const stores = filesystems.filter(({ roles }) => roles.includes("imagefs"));
  const isSound = (store: Filesystem): boolean =>
    store.capacityBytes > 0n && store.availableBytes >= 0n;
  const blocks = stores.filter((store) => !isSound(store)).map(invalidCapacity);
  const usage = stores.filter(isSound).map((store) => diskUsageOf(store, limits));
  return {
    usage,
    blocks: stores.length === 0 ? [NO_STORE] : blocks,
    targets: usage.filter((one) => one.usedPercent >= one.highPercent).map(lowTarget),
  };
}

type InvalidCapacity = Extract<RemovalBlock, { readonly kind: "invalid-capacity" }>;

export const NO_STORE: InvalidCapacity = {
  kind: "invalid-capacity",
  path: "",
  message: "the runtime names no image filesystem",
};

export const invalidCapacity = ({ path, capacityBytes }: Filesystem): InvalidCapacity => ({
  kind: "invalid-capacity",
  path,
  message: `the image filesystem at ${path} reports a capacity of ${capacityBytes} bytes`,
});

function diskUsageOf(filesystem: Filesystem, { highPercent, lowPercent }: Thresholds): DiskUsage {
  const { capacityBytes, availableBytes } = filesystem;
  return {
    filesystem,
    // More than the capacity is a rounding.
    usedPercent: usedPercent(capacityBytes, smaller(availableBytes, capacityBytes)),
    inodesUsedPercent: inodesUsedPercent(filesystem),
    highPercent,
    lowPercent,
  };
}

function lowTarget({ filesystem, highPercent, lowPercent }: DiskUsage): DiskTarget {
  const { capacityBytes: capacity } = filesystem;
  // Multiplies before dividing: the whole part of the share that the low threshold leaves free.
  const availableBytes = (capacity * BigInt(100 - lowPercent)) / 100n;
  // Usage is below the high threshold if `100 · available / capacity` reaches `101 - high`; rounded up.
  const relievedBytes = (capacity * BigInt(101 - highPercent) + 99n) / 100n;
  return spaceTarget(filesystem, { trigger: { kind: "space" }, availableBytes, relievedBytes });
}

/** 100 less the whole percent that is available: usage is rounded up, as in the kubelet. */
const usedPercent = (capacity: bigint, available: bigint): number =>
  Number(100n - (100n * available) / capacity);

/** `null` if the filesystem counts no inodes, or reports more free ones than it has. */
export const inodesUsedPercent = ({ inodes, inodesFree }: Filesystem): number | null =>
  inodes <= 0n || inodesFree < 0n || inodesFree > inodes ? null : usedPercent(inodes, inodesFree);

/** Until so much is available on every filesystem that holds images, whatever the thresholds. */
export function freeTargets(
  { filesystems }: Pick<Snapshot, "filesystems">,
  availableBytes: bigint,
): readonly ImageTarget[] {
  return filesystems
    .filter(({ roles, availableBytes: now }) => roles.includes("imagefs") && now < availableBytes)
    .map((filesystem) => spaceTarget(filesystem, { trigger: { kind: "free" }, availableBytes }));
}

/** Until so much is available. `relievedBytes`: from where on the trigger is no longer met. */
export function spaceTarget(
  filesystem: Filesystem,
  target: Pick<DiskTarget, "trigger"> & {
    readonly availableBytes: bigint;
    readonly relievedBytes?: bigint;
  },
): DiskTarget {
  const { device, path } = filesystem;
  const { availableBytes, relievedBytes = availableBytes } = target;
  const available = smaller(filesystem.availableBytes, filesystem.capacityBytes);
  const wantedBytes = availableBytes - available + reserveLackOf(filesystem);
  return { kind: "available-bytes", device, path, ...target, wantedBytes, relievedBytes };
}

/** The budget of the image store; `sizeBytes`: what the images take in the runtime's sizes. */
export function budgetTargets(
  sizeBytes: () => bigint,
  { storeBudgetBytes: maximumBytes }: Pick<ImageLimits, "storeBudgetBytes">,
): readonly ImageTarget[] {
  if (maximumBytes === null) return [];
  const wantedBytes = sizeBytes() - maximumBytes;
  const trigger = { kind: "budget" } as const;
  return wantedBytes > 0n ? [{ kind: "store-bytes", trigger, maximumBytes, wantedBytes }] : [];
}

/** Whether a threshold on space is in force: 100 without a maximum age turns image GC off, as in the kubelet. */
export const watchesSpace = ({
  highPercent,
  maximumAge,
}: Pick<ImageLimits, "highPercent" | "maximumAge">): boolean =>
  highPercent !== 100 || maximumAge !== 0n;

/** Whether the periodic image GC loop has anything to do with these limits. */
export const collectsImages = (limits: ImageLimits): boolean =>
  watchesSpace(limits) || limits.storeBudgetBytes !== null;

/** What has to be freed before any of it becomes available: the rest of what the filesystem reserves for root. */
export const reserveLackOf = ({ reservedBytes = 0n, freeBytes }: Filesystem): bigint =>
  freeBytes === undefined ? 0n : atLeastZero(reservedBytes - freeBytes);

// Futility

/** `unusedBytes`: the sizes of the unused images, added up, since nothing tells how much of it they share. */
export function futilityOf(
  target: DiskTarget,
  filesystem: Filesystem,
  given: {
    readonly snapshot: Snapshot;
    readonly unusedBytes: bigint;
    readonly breakdown: Futility["breakdown"];
  },
): Futility {
  const { snapshot, unusedBytes, breakdown } = given;
  const common = { filesystem: filesystem.path, breakdown };
  const used = imageUseOf(filesystem, snapshot);
  if (target.kind === "free-inodes") {
    const { inodesFree: free, inodes: capacity } = filesystem;
    const bound = runtimeOf(snapshot.runtime).countsStore ? used.inodes : null;
    const needed = atLeastZero(target.relievedInodes - free);
    const inodes = { bound, needed, free, capacity };
    const futile = bound === null || bound < needed;
    return { ...common, boundBytes: 0n, neededBytes: 0n, futile, inodes };
  }
  const bound = boundOf(snapshot.runtime, used.bytes, unusedBytes);
  const boundBytes = atLeastZero(smaller(bound, inUseOf(filesystem)) - reserveLackOf(filesystem));
  const neededBytes = atLeastZero(target.relievedBytes - filesystem.availableBytes);
  const futile = boundBytes < neededBytes;
  return { ...common, boundBytes, neededBytes, futile };
}

/** The most that the unused images could take. `usedBytes`: the runtime's figure for its store; `null`: none. */
export function boundOf(
  runtime: Pick<RuntimeInfo, "name">,
  usedBytes: bigint | null,
  unusedBytes: bigint,
): bigint {
  const { sizePercentMax, countsStore } = runtimeOf(runtime);
  const bySizes = (unusedBytes * sizePercentMax) / 100n;
  if (usedBytes === null || !countsStore) return bySizes;
  // Its store holds each layer twice: as it was pulled, which takes no more than unpacked, and unpacked.
  const byStore = usedBytes + smaller(unusedBytes, usedBytes);
  return smaller(byStore, bySizes);
}

// Room

const ROOM_BYTES = 32n * 1024n ** 2n;
const ROOM_INODES = 64n;

/**
 * The disks on which the runtime needs room for a removal. CRI-O rewrites its lists of images and layers for each one:
 * without room it drops the image from its list and keeps the layers for good.
 */
export const roomsOf = ({
  runtime,
  filesystems,
}: Pick<Snapshot, "runtime" | "filesystems">): readonly Filesystem[] =>
  runtimeOf(runtime).removalNeedsRoom
    ? filesystems.filter(({ roles }) => roles.some((role) => role !== "nodefs"))
    : [];

/** Judged by free blocks, because root may use its reserve; ext4 withholds 16 MiB of them. */
export function lacksRoom({
  capacityBytes,
  availableBytes,
  freeBytes = availableBytes,
  inodes,
  inodesFree,
}: DiskReading): boolean {
  // A tmpfs without a limit has 0 of 0 bytes free, btrfs 0 of 0 inodes.
  return (
    (capacityBytes > 0n && freeBytes < ROOM_BYTES) || (inodes > 0n && inodesFree < ROOM_INODES)
  );
}

// Whether a pass goes on

/** The disks as last measured, and what the pass has removed. */
export interface Progress {
  readonly readings: ReadonlyMap<string, DiskReading>;
  /** What the listed images take, for a budget. */
  readonly storeBytes: bigint;
  /** What the removals so far free by the estimates. */
  readonly estimatedBytes: bigint;
  /** The reported sizes of what was removed for the targets. */
  readonly sizes: readonly bigint[];
  /** No candidate is left. */
  readonly isEnd: boolean;
}

/** `estimated`: by the estimates enough was removed, but the disk does not show it yet. */
export type Verdict = "reached" | "estimated" | "go-on";

/** When a pass ends before its last candidate. */
export interface StopRule {
  /** Before each removal for a target, and after the last candidate. */
  readonly verdict: (progress: Progress) => Verdict;
  /** Failed removals for age end the pass before it removes anything for a target. */
  readonly endsOnAgeErrors: boolean;
  /** Removals in a row that give nothing back end the pass. */
  readonly endsIfNothingFreed: boolean;
}

/** As measured: the strictest target decides. By the estimates it waits for space first. */
export const measuredStop = ({ targets }: Pick<ImagePlan, "targets">): StopRule => ({
  verdict: (progress) => {
    const open = targets.filter((target) => !isReached(target, progress));
    if (open.length === 0) return "reached";
    return open.every((target) => isEstimated(target, progress)) ? "estimated" : "go-on";
  },
  endsOnAgeErrors: false,
  endsIfNothingFreed: true,
});

function isReached(target: ImageTarget, { readings, storeBytes }: Progress): boolean {
  switch (target.kind) {
    case "available-bytes": {
      const reading = readings.get(target.device);
      return reading !== undefined && reading.availableBytes >= target.availableBytes;
    }
    case "free-inodes": {
      const reading = readings.get(target.device);
      return reading !== undefined && reading.inodesFree >= target.inodesFree;
    }
    case "store-bytes":
      return storeBytes <= target.maximumBytes;
    case "everything":
      return false;
  }
}

/** No estimate tells how many inodes an image takes, and a budget is counted exactly. */
const isEstimated = (target: ImageTarget, { estimatedBytes }: Progress): boolean =>
  target.kind === "available-bytes" && estimatedBytes >= target.wantedBytes;

/** The free blocks at a time, by the monotonic clock. */
export interface Moment {
  readonly freeBytes: bigint;
  readonly ns: bigint;
}

/** Removals in a row that gave nothing back. */
export interface Streak {
  readonly removals: number;
  readonly estimatedBytes: bigint;
  /** Before the first of them. */
  readonly since: Moment;
}

export interface Removed {
  readonly sizeBytes: bigint;
  readonly estimatedBytes: bigint;
  /** The growth of the free blocks. */
  readonly gainedBytes: bigint;
  readonly before: Moment;
}

/** Below this a removal cannot be told from what other programs do to the disk. */
export const TELLING_BYTES = 1024n ** 2n;
/** What removing an image frees at least, unless all of its layers stay, even if its estimate is a few bytes. */
const LEAST_BYTES = 256n * 1024n;
const GAVE_BACK_PART = 10n;
const STREAK_MAX = 5;

/** `null`: no removal in a row gave nothing back. */
export function streakAfter(streak: Streak | null, removed: Removed): Streak | null {
  const { sizeBytes, gainedBytes, before: since } = removed;
  if (removed.estimatedBytes === 0n || sizeBytes < TELLING_BYTES) return streak;
  const estimatedBytes = larger(removed.estimatedBytes, LEAST_BYTES);
  if (gainedBytes * GAVE_BACK_PART >= estimatedBytes) return null;
  const before = streak ?? { removals: 0, estimatedBytes: 0n, since };
  return {
    ...before,
    removals: before.removals + 1,
    estimatedBytes: before.estimatedBytes + estimatedBytes,
  };
}

export const isTelling = (streak: Streak | null): streak is Streak =>
  streak !== null && streak.removals >= STREAK_MAX;

/** Whether a streak had given nothing back by then, if others wrote all the while as fast as between then and later. */
export function gaveNothing(
  { since, estimatedBytes }: Streak,
  then: Moment,
  later: Moment = then,
): boolean {
  const writtenBytes = atLeastZero(then.freeBytes - later.freeBytes);
  const others = (writtenBytes * (then.ns - since.ns)) / larger(later.ns - then.ns, 1n);
  return (then.freeBytes - since.freeBytes + others) * GAVE_BACK_PART < estimatedBytes;
}
