/** The ledger of a process: on disk, or of a dry run; and with `compat: kubelet` from when images count. */

import type { Config } from "../config/config.ts";
import { volatileMemory } from "../gc/ports.ts";
import { HostError } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { LedgerMemory, WriterPresence } from "../model/ports.ts";
import { wallClock } from "../node/clock.ts";
import type { LockPlaces } from "../node/lock.ts";
import { enterWriters, otherWriters } from "../node/writers.ts";
import type { AgesFrom } from "../policy/facts.ts";
import type { Notify } from "../store/errors.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import type { Recorder } from "../store/recorder.ts";
import { processChannel } from "./state-process.ts";
import { lockPlaces, type Process } from "./world.ts";

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
  const presence = enteredWriters(directory, lockPlaces(config, self));
  const channel = processChannel({ program: self.program, directory });
  const recorder = await openStore({ channel, directory, presence, notify });
  const memory: LedgerMemory = {
    current: () => recorder.ledger(),
    replace: (next, changed) => recorder.saveLedger(next, changed),
  };
  return { memory, recorder };
}

export function ledgerOnDisk(config: Config, notify: Notify): Ledger {
  const { stateDir: directory } = config.values;
  const others = () => otherWriters(directory, lockPlaces(config, { userId: 0 }));
  using store = openStoreReader({ directory, notify, others });
  return store.ledger();
}

/** Without a lock no pass begins, and it says why. */
function enteredWriters(directory: string, places: LockPlaces): WriterPresence | undefined {
  try {
    return enterWriters(directory, places);
  } catch (thrown) {
    if (thrown instanceof HostError) return undefined;
    throw thrown;
  }
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
