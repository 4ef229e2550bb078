/** One check of the disks: a statfs for each filesystem of the last observation, and nothing else. */

import type { ReadEngine } from "../gc/ports.ts";
import type { Compat, Signal } from "../model/limits.ts";
import type { ImageTarget } from "../model/plan.ts";
import type { Filesystem } from "../model/snapshot.ts";
import {
  judgePressure,
  type PressureState,
  type PressureVerdict,
} from "../policy/pressure/judge.ts";

/** Throws `HostError` if a filesystem cannot be measured. */
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

/** Images are removed until the pressure ends; the kubelet removes all unused ones, whatever removing containers freed. */
export function reclaimTargets(
  compat: Compat,
  signals: readonly Signal[],
  verdict: PressureVerdict | null,
): readonly ImageTarget[] {
  if (compat === "none") return verdict?.targets ?? [];
  return signals.map((signal) => ({ kind: "everything", trigger: { kind: "pressure", signal } }));
}
