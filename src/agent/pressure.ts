/** The disks as last measured; one check of them for pressure, when the next comes, and whether it begins a pass. */

import type { Engine, ReadEngine, Seen } from "../gc/ports.ts";
import { messageOf } from "../model/errors.ts";
import { hasRemoved, type Pass } from "../model/pass.ts";
import type { DiskReader } from "../model/ports.ts";
import type { MeasuredFilesystem } from "../model/reports.ts";
import type { DiskReading, Filesystem } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { UNMEASURED } from "../node/disk.ts";
import {
  judgePressure,
  type PressureState,
  type PressureVerdict,
} from "../policy/pressure/thresholds.ts";

type Figures = Pick<DiskReading, "capacityBytes" | "availableBytes" | "inodes" | "inodesFree">;

/** The newest measurement of each filesystem by any part of the agent, so that showing the disks costs no call. */
export class Measurements {
  readonly #now: () => Instant;
  readonly #newest = new Map<string, Figures & { readonly measuredAt: Instant }>();

  constructor(now: () => Instant) {
    this.#now = now;
  }

  /** Wraps the reader, so that every measurement is recorded here. */
  recording(disk: DiskReader): DiskReader {
    return {
      filesystems: async (reported) => {
        const filesystems = await disk.filesystems(reported);
        // Drops filesystems that are no longer named.
        this.#newest.clear();
        for (const filesystem of filesystems)
          if (filesystem.unmeasured === undefined) this.#note(filesystem.path, filesystem);
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
    const { filesystems, observedAt } = seen;
    return filesystems.map(({ unmeasured, ...filesystem }) => {
      const newest = this.#newest.get(filesystem.path);
      if (newest !== undefined) return { ...filesystem, ...newest };
      const why = unmeasured === undefined ? {} : { unmeasured };
      return { ...filesystem, ...why, measuredAt: observedAt };
    });
  }

  #note(path: string, { capacityBytes, availableBytes, inodes, inodesFree }: Figures): void {
    const measuredAt = this.#now();
    this.#newest.set(path, { capacityBytes, availableBytes, inodes, inodesFree, measuredAt });
  }
}

/** A statfs for each known filesystem, and nothing else. One that cannot be measured (`failure`) is not judged. */
export async function checkPressure(
  engine: ReadEngine,
  known: { readonly filesystems: readonly Filesystem[]; readonly state: PressureState },
): Promise<{ readonly verdict: PressureVerdict; readonly failure: string | null }> {
  const { disk, host } = engine.observe;
  const limits = engine.limits();
  const failures: string[] = [];
  const unmeasured = new Set<string>();
  const filesystems = await Promise.all(
    known.filesystems.map(async (filesystem) => {
      const reading = await disk.measure(filesystem.path).catch((thrown: unknown) => {
        failures.push(messageOf(thrown));
        unmeasured.add(filesystem.device);
        return UNMEASURED;
      });
      return { ...filesystem, ...reading };
    }),
  );
  const verdict = judgePressure({
    limits: limits.pressure,
    compat: limits.images.compat,
    filesystems,
    state: known.state,
    uptime: host.clocks().uptime,
  });
  if (failures.length === 0) return { verdict, failure: null };
  const state = withStateOf(unmeasured, known.state, verdict.state);
  const condition = verdict.condition || state.firstMet.size > 0;
  return { verdict: { ...verdict, state, condition }, failure: failures.join("; ") };
}

/** The state after a check that could not measure these devices: nothing is known to have ended there. */
function withStateOf(
  devices: ReadonlySet<string>,
  before: PressureState,
  after: PressureState,
): PressureState {
  const isThere = (key: string): boolean => devices.has(key.slice(key.lastIndexOf("|") + 1));
  return {
    firstMet: new Map([...[...before.firstMet].filter(([key]) => isThere(key)), ...after.firstMet]),
    due: new Set([...[...before.due].filter(isThere), ...after.due]),
    lastMet: after.lastMet,
  };
}

const LONGEST_MS = 10_000;

/** When the next pass under pressure may begin: one that removed nothing doubles the time to the next. */
export class PressurePace {
  readonly #timer: Pick<Engine["timer"], "monotonicNs">;
  readonly #periodMs: () => number;
  /** Passes in a row that removed nothing. */
  #idle = 0;
  #untilNs = 0n;

  constructor({ timer }: Pick<Engine, "timer">, periodMs: () => number) {
    this.#timer = timer;
    this.#periodMs = periodMs;
  }

  mayBegin({ due, reclaim }: PressureVerdict): boolean {
    const isReclaimable = reclaim.containers || reclaim.images || reclaim.logs;
    return due.length > 0 && isReclaimable && this.#timer.monotonicNs() >= this.#untilNs;
  }

  passEnded(pass: Pick<Pass, "images" | "containers">): void {
    this.#idle = hasRemoved(pass) ? 0 : this.#idle + 1;
    const ms = this.#periodMs() * 2 ** Math.min(this.#idle, 16);
    const most = Math.max(LONGEST_MS, this.#periodMs());
    this.#untilNs =
      this.#idle === 0
        ? 0n
        : this.#timer.monotonicNs() + BigInt(Math.round(Math.min(ms, most) * 1e6));
  }

  /** The next check begins a pass if one is due. */
  /** No threshold is due any more. */
  reset(): void {
    this.#idle = 0;
    this.#untilNs = 0n;
  }
}
