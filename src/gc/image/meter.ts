/** Measures the filesystems during a pass: free space, and the gain of each removal and of all of them. */

import type { ImageOutcome } from "../../model/outcome.ts";
import type { ImageTarget } from "../../model/plan.ts";
import type { DiskReader, DiskReading, Timer } from "../../model/ports.ts";
import { atLeastZero, smaller } from "../../model/values.ts";
import { BYTES_PER_REPORTED_BYTE } from "../../policy/space/futility.ts";
import type { Progress } from "../../policy/space/progress.ts";
import { Drift } from "./drift.ts";

/** A filesystem by its device, and a path to measure it by. */
export interface Place {
  readonly device: string;
  readonly path: string;
}

export interface MeterInput {
  readonly disk: Pick<DiskReader, "measure">;
  readonly timer: Pick<Timer, "monotonicNs">;
  readonly targets: readonly ImageTarget[];
  /** The filesystems that hold images, measured in addition to the targets'. */
  readonly stores: readonly Place[];
  /** Their size when the plan was made, as the runtime reports it; `null` if it does not. */
  readonly storeBytes: bigint | null;
  readonly imageCount: number;
  readonly accounting: "measured" | "reported";
}

export interface Gain {
  readonly bytes: bigint;
  readonly inodes: bigint;
}

type Readings = ReadonlyMap<string, DiskReading>;

/** The measurements of one pass. Space that appears before the next removal counts for the previous one. */
export class Meter {
  readonly #input: MeterInput;
  readonly places: readonly Place[];
  /** The devices for the totals: the first that a target names, else those that hold images. */
  readonly #counted: readonly string[];
  readonly #gains = new Map<string, Gain>();
  #readings: Readings = new Map();
  #readNs = 0n;
  #beforeRemoval: Readings | null = null;
  #beforeNs = 0n;
  readonly #drift = new Drift();
  #first: DiskReading | null = null;
  #wantedBytes: bigint | null;
  #reportedBytes = 0n;
  #reportedTotal = 0n;
  #estimatedBytes = 0n;
  #removed = 0;
  #imageCount: number;

  constructor(input: MeterInput) {
    this.#input = input;
    const wanted = measuredPlaces(input.targets);
    const counted = wanted.length > 0 ? wanted.slice(0, 1) : input.stores;
    this.#counted = [...new Set(counted.map(deviceOf))];
    const places = [...wanted, ...input.stores];
    this.places = [...new Map(places.map((place) => [place.device, place])).values()];
    this.#wantedBytes = wantedOf(input.targets);
    this.#imageCount = input.imageCount;
  }

  /** Throws `HostError` if a filesystem cannot be measured: nothing is removed unmeasured. */
  async start(): Promise<void> {
    await this.#read();
    this.#first = this.#primary();
  }

  /** From now on reported sizes count for the targets; earlier removals for age do not. */
  countForTargets(): void {
    this.#reportedBytes = 0n;
    this.#removed = 0;
  }

  /**
   * The targets as the disk is now, read again after removals for age, as in the kubelet; empty if it no longer
   * triggers.
   */
  async targetsNow(): Promise<readonly ImageTarget[]> {
    await this.#read();
    const targets = this.#input.targets.flatMap((target): readonly ImageTarget[] => {
      if (target.kind !== "available-bytes") return [target];
      const reading = this.#readings.get(target.device);
      if (reading === undefined) return [target];
      const { availableBytes, capacityBytes } = reading;
      const available = availableBytes < capacityBytes ? availableBytes : capacityBytes;
      if (available >= target.relievedBytes) return [];
      return [{ ...target, wantedBytes: target.availableBytes - available }];
    });
    this.#wantedBytes = wantedOf(targets);
    return targets;
  }

  /** Returns what has appeared since the previous removal: it still belongs to that one. */
  async beforeRemoval(): Promise<ReadonlyMap<string, bigint>> {
    const [before, beforeNs] = [this.available(), this.#readNs];
    await this.#read();
    const rises = this.risesSince(before);
    const isLate = this.#removed > 0;
    const bytes = new Map([...rises].map(([on, rise]) => [on, isLate ? smaller(rise, 0n) : rise]));
    this.#drift.note({ ns: this.#readNs - beforeNs, bytes });
    this.#creditSince(BYTES_PER_REPORTED_BYTE * this.#reportedTotal);
    this.#beforeRemoval = this.#readings;
    this.#beforeNs = this.#readNs;
    return isLate ? rises : new Map();
  }

  /** By device, as last measured. */
  available(): ReadonlyMap<string, bigint> {
    return new Map([...this.#readings].map(([on, { availableBytes }]) => [on, availableBytes]));
  }

  risesSince(before: ReadonlyMap<string, bigint>): ReadonlyMap<string, bigint> {
    return new Map(
      [...this.available()].map(([device, now]) => [device, now - (before.get(device) ?? now)]),
    );
  }

  /** The gain of the removal in progress by device, less what would have changed without it; may be negative. */
  gains(): ReadonlyMap<string, Gain> {
    const tookNs = this.#readNs - this.#beforeNs;
    return new Map(
      this.#changes().map(([device, { bytes, inodes }]) => [
        device,
        { bytes: bytes - this.#drift.in(tookNs, device), inodes },
      ]),
    );
  }

  /** A path on each filesystem on which freed space appears only with a commit. */
  committed(): readonly string[] {
    return this.places
      .filter(({ device }) => this.#readings.get(device)?.freesOnCommit === true)
      .map(({ path }) => path);
  }

  reading(device: string): DiskReading | undefined {
    return this.#readings.get(device);
  }

  /** What has appeared since before the removal on the store's filesystem or the target's, whichever is larger. */
  async gainedNow(): Promise<bigint> {
    await this.#read();
    return this.#changes().reduce((most, [, { bytes }]) => (bytes > most ? bytes : most), 0n);
  }

  /**
   * Credits the removal by the last measurement, and returns its gain on the devices of the totals; never below 0.
   * `estimatedBytes`: what it frees by its layers, in reported sizes.
   */
  credit(reportedBytes: bigint, estimatedBytes = reportedBytes): bigint {
    this.#imageCount -= 1;
    this.#estimatedBytes += estimatedBytes;
    this.#reportedBytes += reportedBytes;
    this.#reportedTotal += reportedBytes;
    this.#removed += 1;
    return this.creditRest();
  }

  /** Credits the last removal with what has appeared since, and returns it. */
  creditRest(): bigint {
    const before = this.#counted.reduce(
      (sum, one) => sum + (this.#gains.get(one)?.bytes ?? 0n),
      0n,
    );
    this.#creditSince();
    return this.#gainOf(this.#counted) - before;
  }

  /** The space of a ghost never counts. */
  async afterGhost(): Promise<void> {
    await this.#read();
    this.#beforeRemoval = null;
  }

  listed(imageCount: number): void {
    this.#imageCount = imageCount;
  }

  /** The gain of a removal counts as soon as it is measured. */
  progress(): Progress {
    const { stores, storeBytes, accounting } = this.#input;
    const read = <T>(of: (reading: DiskReading) => T): ReadonlyMap<string, T> =>
      new Map([...this.#readings].map(([device, reading]) => [device, of(reading)]));
    const gained = (of: keyof Gain): ReadonlyMap<string, bigint> =>
      new Map([...this.#gainsSoFar()].map(([device, gain]) => [device, gain[of]]));
    return {
      accounting,
      availableBytes: read((reading) => reading.availableBytes),
      inodesFree: read((reading) => reading.inodesFree),
      gainedBytes: gained("bytes"),
      gainedInodes: gained("inodes"),
      storeBytes:
        storeBytes === null ? null : storeBytes - this.#gainOf(new Set(stores.map(deviceOf))),
      imageCount: this.#imageCount,
      reportedBytes: this.#reportedBytes,
      estimatedBytes: this.#estimatedBytes,
      removed: this.#removed,
    };
  }

  wantedBytes(): bigint | null {
    return this.#wantedBytes;
  }

  totals(): Omit<ImageOutcome, "end" | "items" | "error" | "ghosts"> {
    const primary = this.#primary();
    return {
      wantedBytes: this.#wantedBytes,
      reportedFreedBytes: this.#reportedBytes,
      measuredFreedBytes: this.#gainOf(this.#counted),
      availableBefore: this.#first?.availableBytes ?? null,
      availableAfter: primary?.availableBytes ?? null,
      capacityBytes: primary?.capacityBytes ?? null,
    };
  }

  /** Bytes that this pass gained on these devices. */
  #gainOf(devices: Iterable<string>): bigint {
    const gains = this.#gainsSoFar();
    return [...devices].reduce((sum, device) => sum + (gains.get(device)?.bytes ?? 0n), 0n);
  }

  /** With what has not been credited yet. */
  #gainsSoFar(): ReadonlyMap<string, Gain> {
    const gains = new Map(this.#gains);
    for (const [device, { bytes, inodes }] of this.#changes()) {
      const credited = gains.get(device) ?? { bytes: 0n, inodes: 0n };
      gains.set(device, {
        bytes: credited.bytes + atLeastZero(bytes),
        inodes: credited.inodes + atLeastZero(inodes),
      });
    }
    return gains;
  }

  /** Since before the removal. */
  #changes(): readonly (readonly [string, Gain])[] {
    return [...this.#readings].flatMap(([device, { availableBytes, inodesFree }]) => {
      const earlier = this.#beforeRemoval?.get(device);
      if (earlier === undefined) return [];
      const bytes = availableBytes - earlier.availableBytes;
      return [[device, { bytes, inodes: inodesFree - earlier.inodesFree }] as const];
    });
  }

  /** Of the first device of the totals, as last measured. */
  #primary(): DiskReading | null {
    const [first] = this.#counted;
    return first === undefined ? null : (this.#readings.get(first) ?? null);
  }

  /** `most`: the most that the pass can have gained so far; what others delete meanwhile does not count. */
  #creditSince(most: bigint | null = null): void {
    if (this.#beforeRemoval === null) return;
    for (const [device, { bytes, inodes }] of this.#changes()) {
      const credited = this.#gains.get(device) ?? { bytes: 0n, inodes: 0n };
      const room = most === null ? bytes : smaller(bytes, most - credited.bytes);
      this.#gains.set(device, {
        bytes: credited.bytes + atLeastZero(room),
        inodes: credited.inodes + atLeastZero(inodes),
      });
    }
    this.#beforeRemoval = this.#readings;
  }

  async #read(): Promise<void> {
    const readings = await Promise.all(
      this.places.map(
        async ({ device, path }) => [device, await this.#input.disk.measure(path)] as const,
      ),
    );
    this.#readings = new Map(readings);
    this.#readNs = this.#input.timer.monotonicNs();
  }
}

const deviceOf = ({ device }: Place): string => device;

/** The places to measure for the targets, each device once. */
function measuredPlaces(targets: readonly ImageTarget[]): readonly Place[] {
  return targets.flatMap((target) =>
    target.kind === "available-bytes" || target.kind === "free-inodes"
      ? [{ device: target.device, path: target.path }]
      : [],
  );
}

/** The most bytes that a target needs; `null` if none is about bytes. */
function wantedOf(targets: readonly ImageTarget[]): bigint | null {
  const wanted = targets.flatMap((target) =>
    target.kind === "available-bytes" || target.kind === "store-bytes" ? [target.wantedBytes] : [],
  );
  return wanted.length === 0 ? null : wanted.reduce((most, one) => (one > most ? one : most));
}
