/** The ledger of a process: on disk, or of a dry run; and with `compat: kubelet` from when images count. */

import type { Config } from "../config/config.ts";
import { volatileMemory } from "../gc/ports.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { LedgerMemory } from "../model/ports.ts";
import { wallClock } from "../node/clock.ts";
import { lockHolder } from "../node/lock.ts";
import type { AgesFrom } from "../policy/facts.ts";
import type { Notify } from "../store/errors.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import type { Recorder } from "../store/recorder.ts";
import { processChannel } from "./state-process.ts";
import type { Process } from "./world.ts";

/** The ledger and the recorder; a dry run records nothing and has its own ledger. */
export async function openState(
  config: Config,
  self: Process,
  notify: Notify,
): Promise<{ readonly memory: LedgerMemory; readonly recorder: Recorder | null }> {
  const directory = config.values.stateDir;
  if (config.values.dryRun) {
    return { memory: volatileMemory(ledgerOnDisk(config, notify)), recorder: null };
  }
  const channel = processChannel({ program: self.program, directory });
  const recorder = await openStore({ channel, directory, notify });
  await recorder.refresh();
  const memory: LedgerMemory = {
    current: () => recorder.ledger(),
    replace: (next, changed) => recorder.saveLedger(next, changed),
  };
  return { memory, recorder };
}

export function ledgerOnDisk(config: Config, notify: Notify): Ledger {
  const { stateDir: directory } = config.values;
  // Nothing is closed while its holder lives.
  const others = () => ({ isOneAlive: lockHolder(directory) !== null, isOneBehind: false });
  using store = openStoreReader({ directory, notify, others });
  return store.ledger();
}

/** The kubelet forgets images when its process ends; with `compat: kubelet` they count from this process's first look. */
export function countedMemory(memory: LedgerMemory, limits: () => Limits): LedgerMemory {
  if (limits().images.compat === "none") return memory;
  let first: AgesFrom | null = null;
  let last: Pick<Ledger, "watched" | "uptime"> | null = null;
  const agesFrom = ({ watched, observedAt, uptime }: Ledger): AgesFrom => {
    // More than has passed is from a ledger that the disk gave late: it is new to this process too.
    const isOther =
      last === null || watched < last.watched || watched - last.watched > uptime - last.uptime;
    last = { watched, uptime };
    if (first === null || isOther) first = { watched, at: observedAt ?? wallClock() };
    return first;
  };
  return {
    current: () => memory.current(),
    replace: (next, changed) => {
      agesFrom(next);
      memory.replace(next, changed);
    },
    agesFrom,
  };
}
