/** Versions of runtimes whose faults matter to collection. */

import type { RuntimeInfo } from "../../model/snapshot.ts";
import { isVersionWithin, type Version } from "../../policy/version.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import { ok, warning } from "./check.ts";

interface Fault {
  readonly runtime: string;
  readonly from: Version;
  /** The first version without it. */
  readonly until: Version;
  readonly what: string;
  readonly advice: string;
}

const FAULTS: readonly Fault[] = [
  {
    runtime: "containerd",
    from: [2, 0, 0],
    until: [2, 0, 5],
    what: "containerd 2.0.0 to 2.0.4 frees space long after a removal returns: crigc measures and waits; a kubelet does not and removes too much",
    advice: "update containerd to 2.0.5, 2.1 or later",
  },
];

export function runtimeCheck(runtime: Pick<RuntimeInfo, "name" | "version">): DoctorCheck {
  const { name, version } = runtime;
  const fault = FAULTS.find((it) => it.runtime === name && isVersionWithin(version, it));
  if (fault !== undefined) return warning("runtime-version", fault.what, fault.advice);
  return ok("runtime-version", `no known faults in ${name} ${version}`);
}
