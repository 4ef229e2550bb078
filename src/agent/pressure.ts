/** The disks as last measured; one check of them for pressure, when the next comes, and whether it begins a pass. */

import type { Engine, ReadEngine, Seen } from "../gc/ports.ts";
import { messageOf } from "../model/errors.ts";
import type { Pass } from "../model/pass.ts";
import type { DiskReader, DiskReading } from "../model/ports.ts";
import type { MeasuredFilesystem } from "../model/reports.ts";
import type { Filesystem } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { UNMEASURED } from "../node/disk.ts";
import { effectOf, hasRemoved, pauseAfter, SOONEST_MS } from "../policy/pressure/pace.ts";
import {
  judgePressure,
  keyOf,
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

/** How often a rest looks whether the hold that caused it was released. */
const HOLD_LOOK_MS = 2_000;

/** After a pass that left a threshold met. */
interface Rest {
  readonly untilNs: bigint;
  /** Thresholds that were due; another one begins a pass at once. */
  readonly due: ReadonlySet<string>;
  readonly wasHeld: boolean;
  /** It removed nothing although it could, or a rule ended it. */
  readonly wasIdle: boolean;
}

/**
 * After a pass that removed nothing, another pass that does what one under pressure would not may go on for so long after
 * the rest: pressure that cannot be relieved must not cut off each, on a struggling node before its first removal.
 */
const OTHER_PASS_MS = 60_000;

/** Whether another disk needs containers or logs removed, which a pass begun for images alone leaves alone. */
export const needsMore = (now: PressureVerdict, begun: PressureVerdict["reclaim"]): boolean =>
  !begun.containers && (now.reclaim.containers || (now.reclaim.logs && !begun.logs));

const isReclaimable = ({ due, reclaim }: PressureVerdict): boolean =>
  due.length > 0 && (reclaim.containers || reclaim.images || reclaim.logs);

export class PressurePace {
  readonly #engine: Pick<Engine, "timer" | "hold" | "limits">;
  readonly #periodMs: () => number;
  /** Passes in a row that removed nothing. */
  #idle = 0;
  #rest: Rest | null = null;

  constructor(engine: Pick<Engine, "timer" | "hold" | "limits">, periodMs: () => number) {
    this.#engine = engine;
    this.#periodMs = periodMs;
  }

  /** Whether the check begins a pass: not soon after one, unless something has changed since. */
  shouldBeginPass(verdict: PressureVerdict, isOtherRunning: boolean): boolean {
    const rest = this.#rest;
    const isNew = rest !== null && verdict.due.some((one) => !rest.due.has(keyOf(one)));
    const isReleased = rest?.wasHeld === true && !this.#isHeld();
    if (!isReclaimable(verdict) || isNew || isReleased) this.reset();
    const patienceMs = isOtherRunning && this.#rest?.wasIdle === true ? OTHER_PASS_MS : 0;
    return isReclaimable(verdict) && this.#restMs() + patienceMs <= 0;
  }

  /** Whether the last pass is too recent for another one. */
  isResting(): boolean {
    return this.#rest !== null;
  }

  /** `due`: after the pass. */
  passEnded(
    pass: Pick<Pass, "images" | "containers">,
    due: PressureVerdict["due"],
    hasFailed: boolean,
  ): void {
    const effect = hasFailed ? "failed" : effectOf(pass);
    this.#idle = effect === "nothing" || hasFailed ? this.#idle + 1 : 0;
    const { compat } = this.#engine.limits().images;
    const facts = { effect, idle: this.#idle, periodMs: this.#periodMs(), compat };
    const restNs = BigInt(Math.round(pauseAfter(facts) * 1e6));
    this.#rest = {
      untilNs: this.#engine.timer.monotonicNs() + restNs,
      due: new Set(due.map(keyOf)),
      wasHeld: compat === "none" && this.#isHeld(),
      wasIdle: compat === "none" && !hasFailed && !hasRemoved(pass),
    };
  }

  /** The next check begins a pass if one is due. */
  reset(): void {
    this.#idle = 0;
    this.#rest = null;
  }

  /** Until the next check. Before the first verdict there is nothing to wait for. */
  pauseMs(verdict: PressureVerdict | null): number {
    const crossingMs = Math.max(SOONEST_MS, verdict?.soonestCrossingMs ?? 0);
    const isWanted = this.#rest === null && verdict !== null && isReclaimable(verdict);
    const soonestMs = isWanted ? SOONEST_MS : crossingMs;
    if (this.#rest === null) return Math.min(this.#periodMs(), soonestMs);
    const holdMs = this.#rest.wasHeld ? HOLD_LOOK_MS : Infinity;
    const restMs = this.#restMs();
    return Math.min(this.#periodMs(), soonestMs, holdMs, restMs > 0 ? restMs : SOONEST_MS);
  }

  /** What is left of the rest. */
  #restMs(): number {
    if (this.#rest === null) return 0;
    return Number(this.#rest.untilNs - this.#engine.timer.monotonicNs()) / 1e6;
  }

  #isHeld(): boolean {
    return this.#engine.hold().kind !== "none";
  }
}
