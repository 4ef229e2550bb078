/** What a replay measures: pulls, removals, and the disk over time. */

import type { ImageId } from "../model/ids.ts";
import type { Limits } from "../model/limits.ts";
import type { SimulatedNodeFigures } from "../model/reports.ts";
import { resolveAmount } from "../policy/pressure/thresholds.ts";
import type { SimulatedNode } from "./node.ts";

/** A level of disk usage whose time is counted. */
interface UsageLevel {
  /** `85%`, or an eviction threshold: `imagefs.available<15%`. */
  readonly name: string;
  /** The disk is over it with more than this in use. */
  readonly bytes: bigint;
}

export type Figures = Omit<SimulatedNodeFigures, "node" | "bound">;

export class Measures {
  readonly counts = {
    uses: 0,
    coldStarts: 0,
    pulls: 0,
    pulledBytes: 0n,
    pullsAgain: 0,
    pulledAgainBytes: 0n,
    unfittedPulls: 0,
    removedBytes: 0n,
    passes: 0,
    peakBytes: 0n,
  };
  readonly removed: ImageId[] = [];
  readonly #removedOnce = new Set<ImageId>();
  /** Sums of bytes times milliseconds, and of milliseconds over each level. */
  #byteMs = 0n;
  readonly #overMs: number[];
  readonly #levels: readonly UsageLevel[];
  readonly #fromMs: number;
  #countedMs: number;

  constructor(levels: readonly UsageLevel[], fromMs: number) {
    this.#levels = levels;
    this.#overMs = levels.map(() => 0);
    this.#fromMs = fromMs;
    this.#countedMs = fromMs;
  }

  /** Counts the time in which the disk was as it is; call it before each change. */
  until(atMs: number, { usedBytes }: Pick<SimulatedNode, "usedBytes">): void {
    const ms = atMs - this.#countedMs;
    if (ms <= 0) return;
    this.#countedMs = atMs;
    this.#byteMs += usedBytes * BigInt(Math.round(ms));
    for (const [at, { bytes }] of this.#levels.entries())
      if (usedBytes > bytes) this.#overMs[at] = (this.#overMs[at] ?? 0) + ms;
  }

  pulled(id: ImageId, bytes: bigint): void {
    this.counts.pulls += 1;
    this.counts.pulledBytes += bytes;
    if (!this.#removedOnce.has(id)) return;
    this.counts.pullsAgain += 1;
    this.counts.pulledAgainBytes += bytes;
  }

  holds({ usedBytes }: Pick<SimulatedNode, "usedBytes">): void {
    if (usedBytes > this.counts.peakBytes) this.counts.peakBytes = usedBytes;
  }

  gone(id: ImageId, bytes: bigint): void {
    this.removed.push(id);
    this.#removedOnce.add(id);
    this.counts.removedBytes += bytes;
  }

  figures(capacityBytes: bigint): Figures {
    const spanMs = this.#countedMs - this.#fromMs;
    return {
      ...this.counts,
      removals: this.removed.length,
      capacityBytes,
      meanBytes: spanMs > 0 ? this.#byteMs / BigInt(Math.round(spanMs)) : 0n,
      spanMs,
      over: this.#levels.map(({ name: threshold }, at) => ({
        threshold,
        forMs: this.#overMs[at] ?? 0,
      })),
    };
  }
}

/** The levels whose time is counted: the high threshold, and each eviction threshold on bytes. */
export function usageLevels(
  { images, pressure }: Limits,
  capacityBytes: bigint,
): readonly UsageLevel[] {
  const high = (capacityBytes * BigInt(images.highPercent)) / 100n;
  const evictions = pressure.thresholds.flatMap(({ signal, amount }) => {
    if (signal.endsWith("inodesFree")) return [];
    const limit = resolveAmount(amount, capacityBytes);
    const words = amount.kind === "quantity" ? `${amount.value}` : percentOf(amount.value);
    return [{ name: `${signal}<${words}`, bytes: capacityBytes - limit }];
  });
  return [{ name: `${images.highPercent}%`, bytes: high }, ...evictions];
}

const percentOf = (share: number): string => `${Math.round(share * 10_000) / 100}%`;
