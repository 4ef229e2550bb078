/** Measures the filesystems during a pass: free space, and the gain of each removal and of all of them. */

import type { ImageOutcome } from "../model/pass.ts";
import type { ImagePlan, ImageTarget } from "../model/plan.ts";
import type { DiskReader, Timer } from "../model/ports.ts";
import type { Facts } from "../policy/facts.ts";
import { BYTES_PER_REPORTED_BYTE, countedStoreBytes } from "../policy/space/disk.ts";
import { TELLING_BYTES } from "../policy/space/freed.ts";
import type { Progress } from "../policy/space/targets.ts";
import { PassDisk, type Place } from "./pass-disk.ts";

export interface MeterInput {
  readonly disk: Pick<DiskReader, "measure">;
  readonly timer: Pick<Timer, "monotonicNs" | "sleep">;
  readonly plan: Pick<ImagePlan, "targets">;
  readonly facts: Pick<Facts, "snapshot" | "limits">;
}

/** XFS was seen to free large files 1 to 8 ms after they were deleted. */
const BACKGROUND_MS = 10;
const LOOKS_MAX = 10;

/** The measurements of one pass. Space that appears before the next removal counts for the previous one. */
export class Meter {
  readonly #input: MeterInput;
  readonly #accounting: Progress["accounting"];
  /** The filesystems that hold images, measured in addition to the targets'. */
  readonly stores: readonly Place[];
  /** Their size when the plan was made, as the runtime reports it; `null` if it does not. */
  readonly #storeBytes: bigint | null;
  readonly #disks = new Map<string, PassDisk>();
  /** The disks for the totals: the first that a target names, else those that hold images. */
  readonly #counted: readonly PassDisk[];
  #availableBefore: bigint | null = null;
  #wantedBytes: bigint | null;
  /** Reported sizes of images removed for the targets, and of all. */
  #reportedBytes = 0n;
  #reportedTotal = 0n;
  #estimatedBytes = 0n;
  #removed = 0;

  constructor(input: MeterInput) {
    const { snapshot, limits } = input.facts;
    const { targets } = input.plan;
    this.#input = input;
    this.#accounting = limits.images.accounting;
    this.stores = snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
    this.#storeBytes = countedStoreBytes(snapshot);
    const wanted = placesOf(targets);
    for (const place of [...wanted, ...this.stores])
      this.#disks.set(place.device, new PassDisk(place));
    this.#counted = this.#disksOf(wanted.length > 0 ? wanted.slice(0, 1) : this.stores);
    this.#wantedBytes = wantedOf(targets);
  }

  get disks(): readonly PassDisk[] {
    return [...this.#disks.values()];
  }

  disk(device: string): PassDisk | undefined {
    return this.#disks.get(device);
  }

  /** Throws `HostError` if a filesystem cannot be measured: nothing is removed unmeasured. */
  async start(): Promise<void> {
    await this.read();
    this.#availableBefore = this.#counted[0]?.reading?.availableBytes ?? null;
  }

  async read(): Promise<void> {
    const { disk, timer } = this.#input;
    const { disks } = this;
    const readings = await Promise.all(disks.map(({ path }) => disk.measure(path)));
    const ns = timer.monotonicNs();
    for (const [index, reading] of readings.entries()) disks[index]?.measured(reading, ns);
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
    await this.read();
    const targets = this.#input.plan.targets.flatMap((target): readonly ImageTarget[] => {
      if (target.kind !== "available-bytes") return [target];
      const reading = this.disk(target.device)?.reading ?? null;
      if (reading === null) return [target];
      const { availableBytes, capacityBytes } = reading;
      const available = availableBytes < capacityBytes ? availableBytes : capacityBytes;
      if (available >= target.relievedBytes) return [];
      return [{ ...target, wantedBytes: target.availableBytes - available }];
    });
    this.#wantedBytes = wantedOf(targets);
    return targets;
  }

  /**
   * New targets in the middle of the pass, as seen from its start: what they want now is wanted beside what the pass
   * has gained so far. Disks that the plan left out, such as paused ones, wait for the next pass.
   */
  async retarget(all: readonly ImageTarget[]): Promise<readonly ImageTarget[]> {
    const planned = new Set(placesOf(this.#input.plan.targets).map(({ device }) => device));
    const targets = all.filter((target) => !("device" in target) || planned.has(target.device));
    // What appeared while the pass waited belongs to the previous removal.
    await this.beforeRemoval();
    const fromStart = targets.map((target): ImageTarget => {
      const gained = "device" in target ? this.disk(target.device)?.gained() : undefined;
      if (gained === undefined) return target;
      if (target.kind === "available-bytes")
        return {
          ...target,
          wantedBytes:
            target.wantedBytes +
            (this.#accounting === "reported" ? this.#reportedBytes : gained.bytes),
        };
      if (target.kind === "free-inodes")
        return { ...target, wantedInodes: target.wantedInodes + gained.inodes };
      return target;
    });
    if (targets.length > 0) this.#wantedBytes = wantedOf(fromStart);
    return fromStart;
  }

  /** Just before a removal; what appeared since the previous one still belongs to that one. */
  async beforeRemoval(): Promise<void> {
    await this.read();
    const isLate = this.#removed > 0;
    const most = BYTES_PER_REPORTED_BYTE * this.#reportedTotal;
    for (const disk of this.disks) disk.beginRemoval({ isLate, most });
  }

  /**
   * Measures what the removal gained on the disk where that was most. Less than expected is looked at again while
   * filesystems that free in the background may still do so.
   */
  async afterRemoval(expectedBytes: bigint, signal: AbortSignal): Promise<bigint> {
    const { timer } = this.#input;
    const { disks } = this;
    for (let [look, before] = [0, 0n]; ; look += 1) {
      await this.read();
      const gained = disks
        .map((disk) => disk.change().bytes)
        .reduce((most, bytes) => (bytes > most ? bytes : most), 0n);
      const isBehind = disks.some(({ reading }) => reading?.freesInBackground === true);
      const mayRise = look === 0 || (look < LOOKS_MAX && gained - before >= TELLING_BYTES);
      if (this.#accounting === "reported" || !isBehind || !mayRise || gained >= expectedBytes)
        return gained;
      before = gained;
      await timer.sleep(BACKGROUND_MS, signal);
    }
  }

  /** Paths on filesystems on which freed space appears only with a commit. */
  committed(): readonly string[] {
    return this.disks.flatMap(({ reading, path }) =>
      reading?.freesOnCommit === true ? [path] : [],
    );
  }

  /**
   * Credits the removal by the last measurement, and returns its gain on the disks of the totals; never below 0.
   * `estimatedBytes`: what it frees by its layers, in reported sizes.
   */
  credit(reportedBytes: bigint, estimatedBytes = reportedBytes): bigint {
    this.#estimatedBytes += estimatedBytes;
    this.#reportedBytes += reportedBytes;
    this.#reportedTotal += reportedBytes;
    this.#removed += 1;
    return this.creditRest();
  }

  /** Credits the last removal with what has appeared since, and returns it. */
  creditRest(): bigint {
    const credited = sumOf(this.#counted.map((disk) => disk.creditedBytes));
    for (const disk of this.disks) disk.credit();
    return this.#gained(this.#counted) - credited;
  }

  /** The space of a ghost never counts. */
  async afterGhost(): Promise<void> {
    await this.read();
    for (const disk of this.disks) disk.forgetRemoval();
  }

  /** The gain of a removal counts as soon as it is measured. */
  progress(): Progress {
    const disks = this.disks.flatMap((disk) => {
      if (disk.reading === null) return [];
      const { availableBytes, inodesFree } = disk.reading;
      const gained = disk.gained();
      const bytes = { free: availableBytes, gained: gained.bytes };
      return [
        [disk.device, { bytes, inodes: { free: inodesFree, gained: gained.inodes } }] as const,
      ];
    });
    const storeBytes = this.#storeBytes;
    return {
      accounting: this.#accounting,
      disks: new Map(disks),
      storeBytes: storeBytes && storeBytes - this.#gained(this.#disksOf(this.stores)),
      reportedBytes: this.#reportedBytes,
      estimatedBytes: this.#estimatedBytes,
      removed: this.#removed,
    };
  }

  totals(): Omit<ImageOutcome, "end" | "items" | "error" | "ghosts" | "reportedFreedBytes"> {
    const reading = this.#counted[0]?.reading ?? null;
    return {
      wantedBytes: this.#wantedBytes,
      measuredFreedBytes: this.#gained(this.#counted),
      availableBefore: this.#availableBefore,
      availableAfter: reading?.availableBytes ?? null,
      capacityBytes: reading?.capacityBytes ?? null,
    };
  }

  #disksOf(places: readonly Place[]): readonly PassDisk[] {
    return this.disks.filter(({ device }) => places.some((place) => place.device === device));
  }

  /** Bytes that this pass gained on these disks. */
  #gained(disks: readonly PassDisk[]): bigint {
    return sumOf(disks.map((disk) => disk.gained().bytes));
  }
}

const sumOf = (values: readonly bigint[]): bigint => values.reduce((sum, one) => sum + one, 0n);

/** Where to measure for the targets. */
const placesOf = (targets: readonly ImageTarget[]): readonly Place[] =>
  targets.flatMap((target) =>
    target.kind === "available-bytes" || target.kind === "free-inodes"
      ? [{ device: target.device, path: target.path }]
      : [],
  );

/** The most bytes that a target needs; `null` if none is about bytes. */
function wantedOf(targets: readonly ImageTarget[]): bigint | null {
  const wanted = targets.flatMap((target) =>
    target.kind === "available-bytes" || target.kind === "store-bytes" ? [target.wantedBytes] : [],
  );
  return wanted.length === 0 ? null : wanted.reduce((most, one) => (one > most ? one : most));
}
