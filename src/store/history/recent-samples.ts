// The newest disk samples, in memory: reports on the present must not wait for the disk.

import type { DiskSample } from "../../model/history.ts";
import { readable } from "./history-records.ts";

/** More than a day of passes every five minutes on three filesystems. */
export const SAMPLES_KEPT = 1_000;

export class RecentSamples {
  #samples: readonly DiskSample[] = [];

  /** Adds the history's samples before those not written yet. */
  load(documents: readonly string[]): void {
    const known = readable("sample", documents);
    const keys = new Set(known.map(keyOf));
    this.#samples = [...known, ...this.#samples.filter((sample) => !keys.has(keyOf(sample)))];
  }

  add(samples: readonly DiskSample[]): void {
    this.#samples = [...this.#samples, ...samples].slice(-SAMPLES_KEPT);
  }

  /** In the order in which they were recorded. */
  newest(): readonly DiskSample[] {
    return this.#samples;
  }
}

const keyOf = ({ at, device }: DiskSample): string => `${at} ${device}`;
