/** One check of the disks: a statfs for each filesystem that the last observation found, and nothing else. */

import type { Compat, Signal } from "../../model/limits.ts";
import type { ImageTarget } from "../../model/plan.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import {
  judgePressure,
  type PressureState,
  type PressureVerdict,
} from "../../policy/pressure/judge.ts";
import type { ReadEngine } from "../ports.ts";

/** Throws `HostError` where a filesystem cannot be measured. */
export async function checkPressure(
  engine: ReadEngine,
  known: { readonly filesystems: readonly Filesystem[]; readonly state: PressureState },
): Promise<PressureVerdict> {
  const { disk, host } = engine.observe;
  const limits = engine.limits();
  const filesystems = await Promise.all(
    known.filesystems.map(async (filesystem) => ({
      ...filesystem,
      ...(await disk.measure(filesystem.path)),
    })),
  );
  return judgePressure({
    limits: limits.pressure,
    compat: limits.images.compat,
    filesystems,
    state: known.state,
    uptime: host.clocks().uptime,
  });
}

/** Statfs costs nothing that can be measured, and a disk that is written at 100 MB/s is seen 50 MB after it crossed. */
const SOONEST_MS = 500;

/** The pause before the next check: shorter the nearer a threshold is; before the first observation there is nothing to wait for. */
export const pressurePauseMs = (periodMs: number, verdict: PressureVerdict | null): number =>
  Math.min(periodMs, Math.max(SOONEST_MS, verdict?.soonestCrossingMs ?? 0));

/** Down to where images go: until the pressure is gone; the kubelet removes all that is unused, whatever containers gave back. */
export function reclaimTargets(
  compat: Compat,
  signals: readonly Signal[],
  verdict: PressureVerdict | null,
): readonly ImageTarget[] {
  if (compat === "none") return verdict?.targets ?? [];
  return signals.map((signal) => ({ kind: "everything", trigger: { kind: "pressure", signal } }));
}
