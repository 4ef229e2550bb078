/** The disks of one image pass as they are: read before and after each removal, and while the pass waits for space. */

import type { ImageOutcome } from "../model/pass.ts";
import type { ImageTarget } from "../model/plan.ts";
import type { CommitFilesystem, DiskReader, Timer } from "../model/ports.ts";
import type { DiskReading, Filesystem } from "../model/snapshot.ts";
import { TELLING_BYTES } from "../policy/space.ts";

/** A filesystem by its device, and a path to measure it by. */
export type Place = Pick<Filesystem, "device" | "path">;

const WAIT_MS = 10_000;
const POLL_MS = 100;

export interface MeterInput {
  readonly disk: Pick<DiskReader, "measure">;
  readonly timer: Timer;
  readonly commit: CommitFilesystem;
  /** Where the pass counts what removals give back. */
  readonly stores: readonly Place[];
  readonly targets: readonly ImageTarget[];
  /** Where the runtime needs room. */
  readonly rooms: readonly Place[];
}

export class Meter {
  readonly #input: MeterInput;
  readonly #places: readonly Place[];
  #readings: ReadonlyMap<string, DiskReading> = new Map();
  #first: ReadonlyMap<string, DiskReading> | null = null;

  constructor(input: MeterInput) {
    this.#input = input;
    const wanted = input.targets.filter((target) => "device" in target);
    this.#places = [...wanted, ...input.stores, ...input.rooms].filter(
      ({ device }, at, all) => all.findIndex((one) => one.device === device) === at,
    );
  }

  /** Throws `HostError` if a filesystem cannot be measured: nothing is removed unmeasured. */
  async read(): Promise<void> {
    const { disk } = this.#input;
    const readings = await Promise.all(this.#places.map(({ path }) => disk.measure(path)));
    this.#readings = new Map(
      readings.map((reading, at) => [this.#places[at]?.device ?? "", reading]),
    );
    this.#first ??= this.#readings;
  }

  get readings(): ReadonlyMap<string, DiskReading> {
    return this.#readings;
  }

  get ns(): bigint {
    return this.#input.timer.monotonicNs();
  }

  /** The free blocks where the images are, those reserved for root included: what a removal gives back shows there. */
  get freeBytes(): bigint {
    return this.#freeIn(this.#readings);
  }

  /**
   * Waits until it is enough, 10 s at most, or until space falls, first with a commit of filesystems that free space with
   * their next one. Returns whether the whole wait brought nothing.
   */
  async waitForSpace(isEnough: () => boolean, signal: AbortSignal): Promise<boolean> {
    const { timer, commit } = this.#input;
    const startNs = this.ns;
    const before = this.freeBytes;
    for (const { device, path } of this.#places)
      if (this.#readings.get(device)?.freesOnCommit === true) await commit(path);
    await this.read();
    let most = before;
    while (!isEnough() && this.ns - startNs < BigInt(WAIT_MS) * 1_000_000n) {
      if (signal.aborted || most - this.freeBytes >= TELLING_BYTES) return false;
      if (this.freeBytes > most) most = this.freeBytes;
      await timer.sleep(POLL_MS, signal);
      await this.read();
    }
    return !isEnough() && this.freeBytes - before < TELLING_BYTES;
  }

  totals(): Pick<
    ImageOutcome,
    "measuredFreedBytes" | "availableBefore" | "availableAfter" | "capacityBytes"
  > {
    const device = this.#places[0]?.device ?? "";
    const [first, last] = [this.#first?.get(device), this.#readings.get(device)];
    return {
      measuredFreedBytes: this.freeBytes - this.#freeIn(this.#first ?? this.#readings),
      availableBefore: first?.availableBytes ?? null,
      availableAfter: last?.availableBytes ?? null,
      capacityBytes: last?.capacityBytes ?? null,
    };
  }

  #freeIn(readings: ReadonlyMap<string, DiskReading>): bigint {
    return this.#input.stores.reduce((sum, { device }) => {
      const reading = readings.get(device);
      return sum + (reading?.freeBytes ?? reading?.availableBytes ?? 0n);
    }, 0n);
  }
}
