/** The disks of one image pass as they are: read before and after each removal, and while the pass waits for space. */

import type { ImageOutcome } from "../model/pass.ts";
import type { ImageTarget } from "../model/plan.ts";
import type { DiskReader } from "../model/ports.ts";
import type { DiskReading, Filesystem, Snapshot } from "../model/snapshot.ts";
import { lacksRoom, type Moment, roomsOf, TELLING_BYTES } from "../policy/space.ts";
import type { Engine } from "./ports.ts";

/** A filesystem by its device, and a path to measure it by. */
type Place = Pick<Filesystem, "device" | "path">;

const WAIT_NS = 10_000_000_000n;
const POLL_MS = 100;

export interface MeterPorts extends Pick<Engine, "timer" | "commit"> {
  readonly disk: Pick<DiskReader, "measure">;
}

export class Meter {
  /** Where removals must free something: the disks with a target, else those that hold images. */
  readonly stores: readonly Place[];
  readonly #ports: MeterPorts;
  /** Where the runtime needs room. */
  readonly #rooms: readonly Place[];
  #readings: ReadonlyMap<string, DiskReading> = new Map();
  #first: ReadonlyMap<string, DiskReading> | null = null;

  constructor(ports: MeterPorts, targets: readonly ImageTarget[], snapshot: Snapshot) {
    this.#ports = ports;
    const wanted = targets.filter((target) => "device" in target);
    const holders = snapshot.filesystems.filter(({ roles }) => roles.includes("imagefs"));
    this.stores = eachOnce(wanted.length > 0 ? wanted : holders);
    this.#rooms = roomsOf(snapshot);
  }

  /** Throws `HostError` if a filesystem cannot be measured: nothing is removed unmeasured. */
  async read(): Promise<void> {
    const places = eachOnce([...this.stores, ...this.#rooms]);
    const measured = places.map(
      async ({ device, path }) => [device, await this.#ports.disk.measure(path)] as const,
    );
    this.#readings = new Map(await Promise.all(measured));
    this.#first ??= this.#readings;
  }

  /** By device. */
  get readings(): ReadonlyMap<string, DiskReading> {
    return this.#readings;
  }

  /** The free blocks of the stores now, those reserved for root included: what a removal gives back shows there. */
  get moment(): Moment {
    return { freeBytes: this.#freeIn(this.#readings), ns: this.#ports.timer.monotonicNs() };
  }

  /** The path of a disk without room for the runtime's records; `null`: all have some. */
  get pathWithoutRoom(): string | null {
    const full = this.#rooms.find(({ device }) => {
      const reading = this.#readings.get(device);
      return reading !== undefined && lacksRoom(reading);
    });
    return full?.path ?? null;
  }

  /**
   * Waits until it is enough, 10 s at most, or until space falls, first with a commit of filesystems that free space with
   * their next one. Returns whether the whole wait brought nothing.
   */
  async waitForSpace(isEnough: () => boolean, signal: AbortSignal): Promise<boolean> {
    const { timer, commit } = this.#ports;
    const before = this.moment;
    for (const { device, path } of this.stores)
      if (this.#readings.get(device)?.freesOnCommit === true) await commit(path);
    await this.read();
    let most = before.freeBytes;
    while (!isEnough() && this.moment.ns - before.ns < WAIT_NS) {
      const { freeBytes } = this.moment;
      if (signal.aborted || most - freeBytes >= TELLING_BYTES) return false;
      if (freeBytes > most) most = freeBytes;
      await timer.sleep(POLL_MS, signal);
      await this.read();
    }
    return !isEnough() && this.moment.freeBytes - before.freeBytes < TELLING_BYTES;
  }

  totals(): Pick<
    ImageOutcome,
    "measuredFreedBytes" | "availableBefore" | "availableAfter" | "capacityBytes"
  > {
    const device = this.stores[0]?.device ?? "";
    const [first, last] = [this.#first?.get(device), this.#readings.get(device)];
    return {
      measuredFreedBytes: this.moment.freeBytes - this.#freeIn(this.#first ?? this.#readings),
      availableBefore: first?.availableBytes ?? null,
      availableAfter: last?.availableBytes ?? null,
      capacityBytes: last?.capacityBytes ?? null,
    };
  }

  #freeIn(readings: ReadonlyMap<string, DiskReading>): bigint {
    return this.stores.reduce((sum, { device }) => {
      const reading = readings.get(device);
      return sum + (reading?.freeBytes ?? reading?.availableBytes ?? 0n);
    }, 0n);
  }
}

const eachOnce = (places: readonly Place[]): readonly Place[] =>
  places.filter(({ device }, at) => places.findIndex((one) => one.device === device) === at);
