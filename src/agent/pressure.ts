/** One check of the disks for pressure, when the next comes, and whether it begins a pass. */

import type { Engine, ReadEngine } from "../gc/ports.ts";
import { messageOf } from "../model/errors.ts";
import { hasRemoved, type Pass } from "../model/pass.ts";
import type { MeasuredFilesystem } from "../model/reports.ts";
import { UNMEASURED } from "../node/disk.ts";
import type { PressureState, PressureVerdict } from "../policy/pressure/thresholds.ts";
import type { PressureStatus } from "../report/status.ts";

export interface PressureCheck {
  readonly verdict: PressureVerdict;
  /** As measured now; one that could not be measured as it was. */
  readonly filesystems: readonly MeasuredFilesystem[];
  /** Why one could not be measured, which is then not judged. */
  readonly failure: string | null;
}

/** A statfs for each known filesystem, and nothing else. */
export async function checkPressure(
  engine: ReadEngine,
  known: { readonly filesystems: readonly MeasuredFilesystem[]; readonly state: PressureState },
): Promise<PressureCheck> {
  const { disk, host } = engine.observe;
  const limits = engine.limits();
  /** By device. */
  const failures = new Map<string, string>();
  const found = await Promise.all(
    known.filesystems.map(async (before) => {
      const { unmeasured: _, ...filesystem } = before;
      try {
        const reading = await disk.measure(filesystem.path);
        return { ...filesystem, ...reading, measuredAt: host.clocks().wall };
      } catch (thrown) {
        failures.set(filesystem.device, messageOf(thrown));
        return { ...filesystem, ...UNMEASURED };
      }
    }),
  );
  const filesystems = found.map((it, at) =>
    failures.has(it.device) ? (known.filesystems[at] ?? it) : it,
  );
  const verdict = engine.policy.judgePressure({
    limits: limits.pressure,
    filesystems: found,
    state: known.state,
    uptime: host.clocks().uptime,
  });
  if (failures.size === 0) return { verdict, filesystems, failure: null };
  const state = withStateOf(failures, known.state, verdict.state);
  const condition = verdict.condition || state.firstMet.size > 0;
  const failure = [...failures.values()].join("; ");
  return { verdict: { ...verdict, state, condition }, filesystems, failure };
}

/** The state after a check that could not measure these devices: nothing is known to have ended there. */
function withStateOf(
  devices: ReadonlyMap<string, unknown>,
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

/** Each threshold that is met. */
export const pressureStatus = ({ met, due }: PressureVerdict): readonly PressureStatus[] =>
  met.map((one) => ({
    signal: one.threshold.signal,
    mountpoint: one.filesystem.mountpoint,
    available: one.available,
    limit: one.limit,
    due: due.includes(one),
  }));

const LONGEST_MS = 10_000;

/** When the next pass under pressure may begin: one that removed nothing doubles the time to the next. */
export class PressurePace {
  readonly #timer: Pick<Engine["timer"], "monotonicNs">;
  readonly #periodMs: number;
  /** Passes in a row that removed nothing. */
  #idle = 0;
  #untilNs = 0n;

  constructor({ timer }: Pick<Engine, "timer">, periodMs: number) {
    this.#timer = timer;
    this.#periodMs = periodMs;
  }

  mayBegin({ due, reclaim }: PressureVerdict): boolean {
    const isReclaimable = reclaim.containers || reclaim.images || reclaim.logs;
    return due.length > 0 && isReclaimable && this.#timer.monotonicNs() >= this.#untilNs;
  }

  passEnded(pass: Pick<Pass, "images" | "containers">): void {
    this.#idle = hasRemoved(pass) ? 0 : this.#idle + 1;
    if (this.#idle === 0) return this.reset();
    const ms = this.#periodMs * 2 ** Math.min(this.#idle, 16);
    const most = Math.max(LONGEST_MS, this.#periodMs);
    this.#untilNs = this.#timer.monotonicNs() + BigInt(Math.round(Math.min(ms, most) * 1e6));
  }

  /** No threshold is due any more, or something was removed. */
  reset(): void {
    this.#idle = 0;
    this.#untilNs = 0n;
  }
}
