/** Versions of runtimes whose faults matter to collection. */

import type { RuntimeInfo } from "../../model/snapshot.ts";
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

type Version = readonly [major: number, minor: number, patch: number];

const FAULTS: readonly Fault[] = [
  {
    runtime: "containerd",
    from: [2, 0, 0],
    until: [2, 0, 5],
    what: "containerd 2.0.0 to 2.0.4 gives space back long after it calls a removal done: crigc measures and waits, and a kubelet beside it does not and removes too much",
    advice: "update containerd to 2.0.5, 2.1 or later",
  },
];

export function runtimeCheck(runtime: Pick<RuntimeInfo, "name" | "version">): DoctorCheck {
  const { name, version } = runtime;
  const fault = FAULTS.find((it) => it.runtime === name && isWithin(version, it));
  if (fault !== undefined) return warning("runtime-version", fault.what, fault.advice);
  return ok("runtime-version", `nothing is known against ${name} ${version}`);
}

/** A pre-release of a version counts as that version: `2.0.0-rc.1` has its faults. */
function isWithin(text: string, { from, until }: Fault): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) return false;
  const version: Version = [Number(match[1]), Number(match[2]), Number(match[3])];
  return compare(version, from) >= 0 && compare(version, until) < 0;
}

const compare = (one: Version, other: Version): number =>
  one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
