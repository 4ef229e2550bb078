/** The kubelet's eviction manager (`synchronize` in its `eviction_manager.go`): one check, and what may be reclaimed for it. */
import type { Filesystem } from "../../model/snapshot.ts";
import {
  judgePressure as judged,
  type PressureInput,
  type PressureVerdict,
} from "../pressure/thresholds.ts";

/**
 * Thresholds, minimum reclaim, grace and transition are crigc's too. The kubelet knows one filesystem of each role, reclaims
 * no logs, and has no target.
 */
export function judgePressure(input: PressureInput): PressureVerdict {
  const verdict = judged({ ...input, filesystems: firstOfEachRole(input.filesystems) });
  return { ...verdict, reclaim: { ...verdict.reclaim, logs: false }, targets: [] };
}

const firstOfEachRole = (filesystems: readonly Filesystem[]): readonly Filesystem[] =>
  filesystems.flatMap((filesystem) => {
    const roles = filesystem.roles.filter(
      (role) => filesystems.find((one) => one.roles.includes(role)) === filesystem,
    );
    return roles.length === 0 ? [] : [{ ...filesystem, roles }];
  });
