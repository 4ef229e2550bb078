/** The ledger of a process: on disk, or of a dry run. */

import type { Config } from "../config/config.ts";
import { volatileMemory } from "../gc/ports.ts";
import type { LedgerMemory } from "../model/ports.ts";
import { machineId, wallClock } from "../node/clock.ts";
import { lockHolder } from "../node/lock.ts";
import type { StatePlaces } from "../state/files.ts";
import { openReader, type StateReader } from "../state/reader.ts";
import { Recorder } from "../state/recorder.ts";
import { State } from "../state/state.ts";
import type { Process } from "./world.ts";

type Self = Pick<Process, "userId">;
type Notify = (message: string) => void;

const placesOf = ({ values }: Config, { userId }: Self): StatePlaces => ({
  directory: values.stateDir,
  runDirectory: values.runDir,
  userId,
  machineId: machineId(),
});

/** For a process that holds the node. A dry run records nothing and has its own ledger. */
export async function openState(
  config: Config,
  self: Self,
  notify: Notify,
): Promise<{ readonly memory: LedgerMemory; readonly recorder: Recorder | null }> {
  if (config.values.dryRun) {
    const { ledger } = stateOnDisk(config, self, notify);
    return { memory: volatileMemory(ledger()), recorder: null };
  }
  const state = await State.open({ ...placesOf(config, self), notify });
  const memory: LedgerMemory = {
    current: () => state.ledger,
    replace: (next) => state.keep(next),
    save: () => state.save(),
  };
  return { memory, recorder: new Recorder(state, wallClock) };
}

/** Changes nothing. */
export const stateOnDisk = (config: Config, self: Self, notify: Notify): StateReader =>
  openReader({
    ...placesOf(config, self),
    notify,
    // No ledger is closed while its holder lives.
    isOwner: lockHolder(config.values.stateDir) === null,
  });
