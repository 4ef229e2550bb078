/** One check of the disks: a statfs for each filesystem that the last observation found, and nothing else. */

import type { Filesystem } from "../model/snapshot.ts";
import { judgePressure, type PressureState, type PressureVerdict } from "../policy/pressure.ts";
import type { ReadEngine } from "./ports.ts";

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
