/** One filesystem during a pass: what it has free, what removals gained there, and whether they give anything back. */

import type { DiskReading } from "../model/ports.ts";
import { atLeastZero, smaller } from "../model/values.ts";
import {
  afterRemoval,
  afterRise,
  noStreak,
  type Removed,
  type Streak,
} from "../policy/space/freed.ts";

/** A filesystem by its device, and a path to measure it by. */
export interface Place {
  readonly device: string;
  readonly path: string;
}

export interface Gain {
  readonly bytes: bigint;
  readonly inodes: bigint;
}

/** What other programs changed in a time without a removal. */
interface Quiet {
  readonly ns: bigint;
  readonly bytes: bigint;
}

/** The changes of a second give the rate. */
export const DRIFT_NS = 1_000_000_000n;

export class PassDisk {
  readonly device: string;
  readonly path: string;
  /** The last measurement. */
  reading: DiskReading | null = null;
  #readNs = 0n;
  /** Before the last removal; `null` if its space does not count. */
  #before: { readonly reading: DiskReading; readonly ns: bigint } | null = null;
  /** The measurement before the last one. */
  #previous = { ns: 0n, bytes: 0n };
  #credited: Gain = { bytes: 0n, inodes: 0n };
  /** Newest last. */
  #quiet: readonly Quiet[] = [];
  /** Removals in a row, across passes, that gave nothing back. */
  streak: Streak = { ...noStreak };
  /** A removal of this pass gave something back. */
  gaveBack = false;

  constructor({ device, path }: Place) {
    this.device = device;
    this.path = path;
  }

  measured(reading: DiskReading, ns: bigint): void {
    this.#previous = { ns: this.#readNs, bytes: this.availableBytes };
    this.reading = reading;
    this.#readNs = ns;
  }

  get availableBytes(): bigint {
    return this.reading?.availableBytes ?? 0n;
  }

  /** Measured just before a removal. `isLate`: what appeared may belong to the one before, up to `most` for all of the pass. */
  beginRemoval({ isLate, most }: { readonly isLate: boolean; readonly most: bigint }): void {
    const rise = this.noteOthers(isLate);
    if (isLate) this.appeared(rise);
    // Files deleted by other programs do not count as freed by this pass.
    this.credit(most);
    if (this.reading !== null) this.#before = { reading: this.reading, ns: this.#readNs };
  }

  /** What changed between the last two measurements, others did. `isLate`: but a rise may belong to a removal. */
  noteOthers(isLate: boolean): bigint {
    const rise = this.availableBytes - this.#previous.bytes;
    const bytes = isLate ? smaller(rise, 0n) : rise;
    this.#noteQuiet({ ns: this.#readNs - this.#previous.ns, bytes });
    return rise;
  }

  forgetRemoval(): void {
    this.#before = null;
  }

  /** Since before the removal. */
  change(): Gain {
    const before = this.#before?.reading;
    if (before === undefined || this.reading === null) return { bytes: 0n, inodes: 0n };
    return {
      bytes: this.reading.availableBytes - before.availableBytes,
      inodes: this.reading.inodesFree - before.inodesFree,
    };
  }

  /** Of the pass, with what has not been credited yet. */
  gained(): Gain {
    const { bytes, inodes } = this.change();
    return {
      bytes: this.#credited.bytes + atLeastZero(bytes),
      inodes: this.#credited.inodes + atLeastZero(inodes),
    };
  }

  get creditedBytes(): bigint {
    return this.#credited.bytes;
  }

  /** `most`: the most that the pass can have gained so far. */
  credit(most: bigint | null = null): void {
    if (this.#before === null || this.reading === null) return;
    const { bytes, inodes } = this.change();
    const room = most === null ? bytes : smaller(bytes, most - this.#credited.bytes);
    this.#credited = {
      bytes: this.#credited.bytes + atLeastZero(room),
      inodes: this.#credited.inodes + atLeastZero(inodes),
    };
    this.#before = { ...this.#before, reading: this.reading };
  }

  /** Counts a removal; `countsInodes`: freed inodes count too. */
  removed(removed: Removed, countsInodes: boolean): void {
    this.#change(this.#after(removed, countsInodes));
  }

  /** Whether nothing seems to come of a removal that took longer than what others do was watched for. */
  isUnsure(removed: Removed, countsInodes: boolean): boolean {
    const isLong = this.#before !== null && this.#readNs - this.#before.ns > DRIFT_NS;
    return isLong && this.#after(removed, countsInodes).removals > this.streak.removals;
  }

  #after(removed: Removed, countsInodes: boolean): Streak {
    if (this.#before === null) return this.streak;
    const { bytes, inodes } = this.change();
    const gained = bytes - this.#drift(this.#readNs - this.#before.ns);
    const gaveInodes = countsInodes && inodes > 0n;
    return afterRemoval(this.streak, removed, gaveInodes ? removed.estimatedBytes : gained);
  }

  /** Space that appeared since the last removal. */
  appeared(bytes: bigint): void {
    this.#change(afterRise(this.streak, bytes));
  }

  #change(after: Streak): void {
    if (after === noStreak) this.gaveBack = true;
    this.streak = after;
  }

  #noteQuiet(quiet: Quiet): void {
    const all = [...this.#quiet, quiet];
    let ns = 0n;
    const from = all.findLastIndex((one) => (ns += one.ns) >= DRIFT_NS);
    this.#quiet = all.slice(Math.max(0, from));
  }

  /**
   * By how much available space changes in that time without a removal. A rise seen in less time is not extrapolated:
   * one deleted file would count against every removal of the next second.
   */
  #drift(ns: bigint): bigint {
    const quietNs = this.#quiet.reduce((sum, one) => sum + one.ns, 0n);
    const bytes = this.#quiet.reduce((sum, one) => sum + one.bytes, 0n);
    if (bytes > 0n && quietNs < ns) return bytes;
    return quietNs > 0n ? (bytes * ns) / quietNs : 0n;
  }
}
