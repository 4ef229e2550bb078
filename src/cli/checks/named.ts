/** What the configuration names and only fails when it is needed: the event hook, the metrics address, the state directory's disk. */

import type { Config } from "../../config/config.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import type { Machine } from "../openers.ts";
import { failed, ok, warning } from "./check.ts";

export interface Named {
  readonly config: Config;
  readonly machine: Pick<Machine, "device" | "executableFault" | "addressFault">;
  /** Empty where the node could not be looked at. */
  readonly filesystems: readonly Filesystem[];
  /** An agent listens on its own address. */
  readonly hasAgent: boolean;
}

/** Only of what is configured. */
export async function namedChecks(named: Named): Promise<readonly DoctorCheck[]> {
  return [...hookCheck(named), ...(await addressCheck(named)), ...(await stateDiskCheck(named))];
}

function hookCheck({ config: { eventHook }, machine }: Named): readonly DoctorCheck[] {
  if (eventHook === null) return [];
  const fault = machine.executableFault(eventHook);
  return [
    fault === null
      ? ok("event-hook", `${eventHook} can be run`)
      : failed(
          "event-hook",
          `cannot run ${eventHook}: ${fault}; no event reaches it`,
          "install it there with mode 0755, or change --event-hook",
        ),
  ];
}

async function addressCheck(named: Named): Promise<readonly DoctorCheck[]> {
  const address = named.config.metricsBindAddress;
  if (address === null || named.hasAgent) return [];
  const fault = await named.machine.addressFault(address);
  return [
    fault === null
      ? ok("metrics-address", `${address} is free`)
      : failed(
          "metrics-address",
          `cannot listen on ${address}: ${fault}`,
          "stop what listens there, or change --metrics-bind-address",
        ),
  ];
}

/** Nothing to say on a node with one disk: there is no other place. */
async function stateDiskCheck(named: Named): Promise<readonly DoctorCheck[]> {
  const { filesystems, config } = named;
  const images = filesystems.find(({ roles }) => roles.includes("imagefs"));
  if (images === undefined || images.roles.includes("nodefs")) return [];
  const { stateDir } = config.paths;
  if ((await named.machine.device(stateDir)) !== images.device) return [];
  return [
    warning(
      "state-filesystem",
      `${stateDir} is on the image filesystem: when that is full, crigc cannot save ledger and history`,
      "move it to another filesystem with --state-dir",
    ),
  ];
}
