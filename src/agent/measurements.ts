/** The newest measurement of each filesystem by any part of the agent, so that showing the disks costs no call. */

import type { Seen } from "../gc/ports.ts";
import type { DiskReader, DiskReading } from "../model/ports.ts";
import type { MeasuredFilesystem } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";

interface Measurement {
  readonly reading: DiskReading;
  readonly at: Instant;
}

export class Measurements {
  readonly #now: () => Instant;
  readonly #newest = new Map<string, Measurement>();

  constructor(now: () => Instant) {
    this.#now = now;
  }

  /** Wraps the reader, so that every measurement is recorded here. */
  noting(disk: DiskReader): DiskReader {
    return {
      filesystems: async (reported) => {
        const filesystems = await disk.filesystems(reported);
        // Drops filesystems that are no longer named.
        this.#newest.clear();
        for (const filesystem of filesystems) this.#note(filesystem.path, filesystem);
        return filesystems;
      },
      measure: async (path) => {
        const reading = await disk.measure(path);
        this.#note(path, reading);
        return reading;
      },
    };
  }

  /**
   * The filesystems of the last observation with the newest figures: a pass is recorded at its end, with figures of its
   * start.
   */
  newest(seen: Pick<Seen, "filesystems" | "observedAt"> | null): readonly MeasuredFilesystem[] {
    if (seen === null) return [];
    return seen.filesystems.map((filesystem) => {
      const newer = this.#newest.get(filesystem.path);
      return newer === undefined
        ? { ...filesystem, measuredAt: seen.observedAt }
        : { ...filesystem, ...newer.reading, measuredAt: newer.at };
    });
  }

  #note(path: string, reading: DiskReading): void {
    const { capacityBytes, availableBytes, inodes, inodesFree } = reading;
    const figures = { capacityBytes, availableBytes, inodes, inodesFree };
    this.#newest.set(path, { reading: figures, at: this.#now() });
  }
}
