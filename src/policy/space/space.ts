/** The kubelet's threshold arithmetic in exact integers, for bytes and for inodes. */
import type { Compat } from "../../model/limits.ts";
import type { Filesystem } from "../../model/snapshot.ts";

/** A filesystem's capacity and what is available; bytes or inodes. */
export interface Amounts {
  readonly capacity: bigint;
  readonly available: bigint;
}

/** Percentages of a trigger, 0 to 100. */
export interface Percents {
  readonly high: number;
  readonly low: number;
}

/** The result for one threshold on one filesystem. */
export interface Shortage {
  readonly usedPercent: number;
  readonly triggered: boolean;
  /** What has to be freed to reach `target`; 0 or less if that much is available. */
  readonly wanted: bigint;
  /** The amount available to which a pass frees. */
  readonly target: bigint;
  /** The smallest amount available at which the threshold no longer triggers. */
  readonly relieved: bigint;
}

/** Judges one threshold. The capacity is above 0. */
export function shortageOf(amounts: Amounts, percents: Percents): Shortage {
  const used = usedPercent(amounts);
  const target = targetAvailable(amounts.capacity, percents.low);
  return {
    usedPercent: used,
    triggered: used >= percents.high,
    wanted: target - amounts.available,
    target,
    relieved: relievedAvailable(amounts.capacity, percents.high),
  };
}

/** 100 less the whole percent that is available: usage is rounded up. */
export const usedPercent = ({ capacity, available }: Amounts): number =>
  Number(100n - (100n * available) / capacity);

/** Multiplies before dividing: the whole part of the share that the low threshold leaves free. */
export const targetAvailable = (capacity: bigint, lowPercent: number): bigint =>
  (capacity * BigInt(100 - lowPercent)) / 100n;

/**
 * Usage is below `high` if `100 · available / capacity` reaches `101 - high`; rounded up. With a threshold of 0 this
 * exceeds the capacity: such a disk always triggers.
 */
export const relievedAvailable = (capacity: bigint, highPercent: number): bigint =>
  (capacity * BigInt(101 - highPercent) + 99n) / 100n;

export type Checked =
  | { readonly kind: "valid"; readonly amounts: Amounts; readonly clamped: boolean }
  | { readonly kind: "invalid"; readonly message: string };

/**
 * Whether a filesystem's figures are plausible. Available may exceed the capacity by a rounding: 4096 bytes or a
 * thousandth of the capacity, whichever is more. Beyond that the figures contradict each other and nothing is decided
 * on them; the kubelet treats such a disk as empty.
 */
export function checkedSpace(filesystem: Filesystem, compat: Compat): Checked {
  const { capacityBytes: capacity, availableBytes: available, path } = filesystem;
  if (capacity <= 0n) {
    return {
      kind: "invalid",
      message: `the image filesystem at ${path} reports a capacity of ${capacity} bytes`,
    };
  }
  if (available < 0n || (compat === "none" && available > capacity + rounding(capacity))) {
    // Without the figure that differs each time: what lasts is reported once.
    const what =
      available < 0n ? "less than 0 bytes available" : "more available than its capacity";
    const message = `the filesystem at ${path} reports ${what}, of ${capacity} bytes`;
    return { kind: "invalid", message };
  }
  const clamped = available > capacity;
  return {
    kind: "valid",
    amounts: { capacity, available: clamped ? capacity : available },
    clamped,
  };
}

/** `null` if the filesystem counts no inodes, or reports more free ones than it has. */
export function checkedInodes(filesystem: Filesystem): Amounts | null {
  const { inodes, inodesFree } = filesystem;
  if (inodes <= 0n || inodesFree < 0n || inodesFree > inodes) return null;
  return { capacity: inodes, available: inodesFree };
}

const rounding = (capacity: bigint): bigint =>
  capacity / 1000n > 4096n ? capacity / 1000n : 4096n;
