/** Counts, by filesystem, removals in a row that gave nothing back, across passes. */

import type { NothingFreed } from "../../model/outcome.ts";
import type { ImageCandidate, ImageTarget } from "../../model/plan.ts";
import type { Facts } from "../../policy/facts.ts";
import { expectedBytes } from "../../policy/image/images.ts";
import {
  afterRemoval,
  afterRise,
  type FreedHere,
  givesNothing,
  noStreak,
  type Streak,
} from "../../policy/space/nothing-freed.ts";
import type { Gain, Meter, Place } from "./meter.ts";

export class FreedSpace {
  readonly #meter: Meter;
  readonly #ledger: Facts["ledger"];
  readonly #places: readonly Place[];
  /** Devices on which freed inodes count too. */
  readonly #inodes: ReadonlySet<string>;
  readonly #streaks: Map<string, Streak>;
  readonly #gaveBack = new Set<string>();
  #hasRemoved = false;
  #ended: readonly string[] = [];

  constructor(
    { ledger, purpose }: Pick<Facts, "ledger" | "purpose">,
    meter: Meter,
    targets: readonly ImageTarget[],
  ) {
    this.#meter = meter;
    this.#ledger = ledger;
    this.#places = meter.places;
    this.#inodes = new Set(targets.flatMap((it) => (it.kind === "free-inodes" ? [it.device] : [])));
    this.#streaks = new Map(
      this.#places.map(({ device, path }) => {
        // Removals by hand count only those of the same command.
        const before = purpose.kind === "all-unused" ? undefined : ledger.nothingFreed.get(path);
        const { knownSharers, removals } = before ?? noStreak;
        return [device, { ...noStreak, knownSharers, removals }];
      }),
    );
  }

  /** `gains`: by device, of this removal alone. */
  removed(candidate: ImageCandidate, gains: ReadonlyMap<string, Gain>): void {
    this.#hasRemoved = true;
    const removed = {
      estimatedBytes: expectedBytes(candidate),
      leastBytes: candidate.sharersKnown === true ? (candidate.frees?.lowerBytes ?? null) : null,
    };
    for (const [device, gain] of gains) {
      const gaveInodes = this.#inodes.has(device) && gain.inodes > 0n;
      const gained = gaveInodes ? removed.estimatedBytes : gain.bytes;
      this.#change(device, (streak) => afterRemoval(streak, removed, gained));
    }
  }

  /** Space that appeared since the last removal. */
  appeared(rises: ReadonlyMap<string, bigint>): void {
    for (const [device, bytes] of rises) this.#change(device, (streak) => afterRise(streak, bytes));
  }

  /** Whether removals give nothing back on any of these devices. */
  givesNothing(devices: readonly string[]): boolean {
    return devices.every((device) => givesNothing(this.#streaks.get(device) ?? noStreak));
  }

  /** The pass ends for these devices. */
  end(devices: readonly string[]): NothingFreed {
    this.#ended = devices;
    const [place] = this.#places.filter(({ device }) => devices.includes(device));
    const { path: filesystem, device } = place ?? { path: "", device: "" };
    const { removals, estimatedBytes, gainedBytes } = this.#streaks.get(device) ?? noStreak;
    const isNew = (this.#ledger.nothingFreed.get(filesystem)?.pauses ?? 0) === 0;
    return { filesystem, removals, estimatedBytes, gainedBytes, isNew };
  }

  /** For the ledger; empty if the pass has removed nothing. */
  here(): readonly FreedHere[] {
    if (!this.#hasRemoved) return [];
    return this.#places.flatMap(({ device, path }) => {
      const [streak, reading] = [this.#streaks.get(device), this.#meter.reading(device)];
      if (streak === undefined || reading === undefined) return [];
      const gaveBack = this.#gaveBack.has(device);
      return [{ path, streak, gaveBack, reading, ended: this.#ended.includes(device) }];
    });
  }

  #change(device: string, change: (streak: Streak) => Streak): void {
    const before = this.#streaks.get(device) ?? noStreak;
    const after = change(before);
    if (after === noStreak) this.#gaveBack.add(device);
    this.#streaks.set(device, after);
  }
}
