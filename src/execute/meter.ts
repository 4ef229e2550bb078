/** Measures the filesystems while images go: what is free, what each removal gained, what all of them gained. */
import type { ImageTarget } from "../model/plan.ts";
import type { DiskReader, DiskReading } from "../observe/ports.ts";
import { measuredPaths, type Gain, type Progress } from "./progress.ts";

export interface MeterInput {
  readonly disk: Pick<DiskReader, "measure">;
  readonly targets: readonly ImageTarget[];
  /** The filesystem of the image store, measured beside those of the targets; `null`: none. */
  readonly storePath: string | null;
  readonly accounting: "measured" | "reported";
}

export interface MeterTotals {
  readonly wantedBytes: bigint | null;
  readonly reportedFreedBytes: bigint;
  readonly measuredFreedBytes: bigint;
  readonly availableBefore: bigint | null;
  readonly availableAfter: bigint | null;
  readonly capacityBytes: bigint | null;
}

/** One pass's measurements. Space that comes before the next removal begins is credited to the one before. */
export class Meter {
  readonly #input: MeterInput;
  readonly #paths: readonly string[];
  readonly #primary: string | null;
  readonly #gains = new Map<string, Gain>();
  #readings: ReadonlyMap<string, DiskReading> = new Map();
  #beforeRemoval: ReadonlyMap<string, DiskReading> | null = null;
  #first: DiskReading | null = null;
  #wantedBytes: bigint | null;
  #reportedBytes = 0n;
  #reportedTotal = 0n;
  #removed = 0;

  constructor(input: MeterInput) {
    this.#input = input;
    const wanted = measuredPaths(input.targets);
    this.#primary = wanted[0] ?? input.storePath;
    this.#paths = [...new Set([...wanted, ...(input.storePath === null ? [] : [input.storePath])])];
    this.#wantedBytes = wantedOf(input.targets);
  }

  /** Throws `HostError` where a filesystem cannot be measured: without a measure nothing is removed. */
  async start(): Promise<void> {
    await this.#read();
    this.#first = this.#primary === null ? null : (this.#readings.get(this.#primary) ?? null);
  }

  /**
   * The kubelet's second look: after its age pass it reads the disk again, and counts freed bytes from nothing.
   * False where the disk no longer triggers.
   */
  async restart(): Promise<boolean> {
    await this.#read();
    this.#reportedBytes = 0n;
    const target = this.#input.targets.find((one) => one.kind === "available-bytes");
    if (target === undefined) return true;
    const available = this.#readings.get(target.path)?.availableBytes ?? 0n;
    if (available >= target.relievedBytes) return false;
    this.#wantedBytes = target.availableBytes - available;
    return true;
  }

  async beforeRemoval(): Promise<void> {
    await this.#read();
    this.#creditLate();
    this.#beforeRemoval = this.#readings;
  }

  /** What has appeared on the store's filesystem, or the target's, since before the removal; the larger of the two. */
  async gainedNow(): Promise<bigint> {
    await this.#read();
    return this.#largestGain();
  }

  /** Credits the removal and returns what it gained on the filesystem that is over; never below 0. */
  async afterRemoval(reportedBytes: bigint): Promise<bigint> {
    await this.#read();
    this.#reportedBytes += reportedBytes;
    this.#reportedTotal += reportedBytes;
    this.#removed += 1;
    const before = this.#primary === null ? undefined : this.#gains.get(this.#primary)?.bytes;
    this.#creditSince();
    const after = this.#primary === null ? undefined : this.#gains.get(this.#primary)?.bytes;
    return (after ?? 0n) - (before ?? 0n);
  }

  /** A ghost's space is never counted. */
  async afterGhost(): Promise<void> {
    await this.#read();
    this.#beforeRemoval = null;
  }

  /** Whether images lie on another device than the one that is over, so that removals may gain nothing there for ever. */
  gainCanBeElsewhere(): boolean {
    return this.#paths.length > 1;
  }

  progress(): Progress {
    const { accounting, storePath } = this.#input;
    return {
      accounting,
      readings: this.#readings,
      gains: this.#gains,
      storeGainedBytes: storePath === null ? 0n : (this.#gains.get(storePath)?.bytes ?? 0n),
      reportedBytes: this.#reportedBytes,
      removed: this.#removed,
    };
  }

  /** Bytes that this pass gained on a path. */
  gainedBytes(path: string): bigint {
    return this.#gains.get(path)?.bytes ?? 0n;
  }

  wantedBytes(): bigint | null {
    return this.#wantedBytes;
  }

  totals(): MeterTotals {
    const primary = this.#primary === null ? undefined : this.#readings.get(this.#primary);
    const { accounting } = this.#input;
    return {
      wantedBytes: this.#wantedBytes,
      reportedFreedBytes: accounting === "reported" ? this.#reportedBytes : this.#reportedTotal,
      measuredFreedBytes: this.#primary === null ? 0n : this.gainedBytes(this.#primary),
      availableBefore: this.#first?.availableBytes ?? null,
      availableAfter: primary?.availableBytes ?? null,
      capacityBytes: primary?.capacityBytes ?? null,
    };
  }

  /** What came late, between the end of one removal and the start of the next, still belongs to the earlier one. */
  #creditLate(): void {
    if (this.#beforeRemoval !== null) this.#creditSince();
  }

  #creditSince(): void {
    const before = this.#beforeRemoval;
    if (before === null) return;
    for (const [path, reading] of this.#readings) {
      const earlier = before.get(path);
      if (earlier === undefined) continue;
      const credited = this.#gains.get(path) ?? { bytes: 0n, inodes: 0n };
      this.#gains.set(path, {
        bytes: credited.bytes + positive(reading.availableBytes - earlier.availableBytes),
        inodes: credited.inodes + positive(reading.inodesFree - earlier.inodesFree),
      });
    }
    this.#beforeRemoval = this.#readings;
  }

  #largestGain(): bigint {
    let largest = 0n;
    for (const [path, reading] of this.#readings) {
      const earlier = this.#beforeRemoval?.get(path);
      if (earlier === undefined) continue;
      const gained = reading.availableBytes - earlier.availableBytes;
      if (gained > largest) largest = gained;
    }
    return largest;
  }

  async #read(): Promise<void> {
    const readings = await Promise.all(
      this.#paths.map(async (path) => [path, await this.#input.disk.measure(path)] as const),
    );
    this.#readings = new Map(readings);
  }
}

const positive = (value: bigint): bigint => (value > 0n ? value : 0n);

/** The largest amount of bytes that any target wants; `null` where none is about bytes. */
function wantedOf(targets: readonly ImageTarget[]): bigint | null {
  const wanted = targets.flatMap((target) =>
    target.kind === "available-bytes" || target.kind === "store-bytes" ? [target.wantedBytes] : [],
  );
  return wanted.length === 0 ? null : wanted.reduce((most, one) => (one > most ? one : most));
}
