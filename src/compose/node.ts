/** Opens a node: to look at it with nothing that could remove, or to collect on it. */

import type { OpenCollector, OpenNode } from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import { Backoff } from "../execute/backoff.ts";
import { LogUsers } from "../execute/container/log-users.ts";
import { sendHook } from "../host/http/hook.ts";
import { readKubelet } from "../host/kubelet/settings.ts";
import { logDeleter } from "../host/logs/logs.ts";
import { readHold } from "../host/state/hold.ts";
import { acquireLock } from "../host/state/lock.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { wallClock } from "../host/time/clock.ts";
import { timer } from "../host/time/timer.ts";
import { type Engine, type Journal, type PassLock, volatileMemory } from "../loop/ports.ts";
import { AssertionError } from "../model/assert.ts";
import { HostError } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import { changedKeys, withoutKey } from "../model/layered-map.ts";
import { emptyLedger, type Ledger } from "../model/ledger.ts";
import type { CallRecord, LedgerMemory } from "../model/ports.ts";
import type { Instant } from "../model/time.ts";
import type { Recorder } from "../store/history/recorder.ts";
import type { StoreNotice } from "../store/notice.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import { eventSource } from "./events.ts";
import { type Host, hostOf } from "./host.ts";
import { connect, type Connected } from "./runtime.ts";
import { processChannel } from "./state-process.ts";
import type { Process } from "./world.ts";

/** Where holds and locks are looked for beside the directories of the configuration. */
const SYSTEM_RUN = "/run";

export async function openNode(config: Config): Promise<OpenNode> {
  const { runtime } = await connect(config);
  // One look needs one: to go through all processes takes milliseconds.
  const kubelet = readKubelet();
  const host = await hostOf(
    () => config,
    () => kubelet,
  );
  const notices: string[] = [];
  const store = openStoreReader({
    directory: config.paths.stateDir,
    files: stateFiles,
    notify: (notice) => notices.push(notice.message),
  });
  const ledger = store.ledger();
  store.close();
  return {
    ledger,
    engine: {
      observe: { runtime: runtime.reader, disk: host.disk, host: host.reader },
      // Also under the kubelet's rules: one that forgot everything would find every image too young, and show no decision.
      memory: volatileMemory(ledger),
      timer,
      limits: () => config.limits,
      hold: () => readHold(config.paths, wallClock()),
      startedAt: null,
    },
    notices,
    close: () => runtime.close(),
  };
}

export interface EngineParts {
  readonly config: () => Config;
  readonly connected: Connected;
  readonly host: Host;
  readonly state: OpenState;
  readonly journal: Journal;
  readonly self: Process;
  readonly startedAt: Instant | null;
  /** What asks for the lock, for whoever finds it held: `crigc gc`. */
  readonly holder: string;
}

/** The engine of a pass that removes, for `gc` and for the agent. */
export function engineOf(parts: EngineParts): Engine {
  const { config, connected, host, state } = parts;
  const { podLogsDir, containerLogsDir } = config().paths;
  const { reader, writer } = connected.runtime;
  return {
    observe: { runtime: reader, disk: host.disk, host: host.reader },
    memory: state.memory,
    timer,
    limits: () => config().limits,
    hold: () => readHold(config().paths, wallClock()),
    startedAt: parts.startedAt,
    writer: config().dryRun ? noWriter : writer,
    remover: config().dryRun
      ? noRemover
      : logDeleter({ podLogsDirectory: podLogsDir, containerLogsDirectory: containerLogsDir }),
    logUsers: new LogUsers(reader, timer),
    backoff: new Backoff(timer),
    hooks: { get: sendHook },
    journal: parts.journal,
    lock: passLock(parts),
    events: eventSource(connected.runtime, () => timer.monotonicNs()),
  };
}

/** What is remembered, and who records; a dry run has no recorder and remembers for itself alone. */
export interface OpenState {
  readonly memory: LedgerMemory;
  readonly recorder: Recorder | null;
}

/** The kubelet forgets with its process; we remember on disk, and under its rules leave there what still holds. */
export async function openState(
  config: Config,
  { program }: Pick<Process, "program">,
  notify: (notice: StoreNotice) => void,
): Promise<OpenState> {
  const directory = config.paths.stateDir;
  if (config.dryRun) {
    const reader = openStoreReader({ directory, files: stateFiles, notify });
    const ledger = config.compat === "kubelet" ? forgotten(reader.ledger()) : reader.ledger();
    reader.close();
    return { memory: volatileMemory(ledger), recorder: null };
  }
  const channel = processChannel({ program, directory });
  const recorder = await openStore({ channel, directory, notify });
  const memory: LedgerMemory =
    config.compat === "kubelet"
      ? forgetfulMemory(recorder)
      : { current: () => recorder.ledger(), replace: (next) => recorder.saveLedger(next) };
  return { memory, recorder };
}

/**
 * What a kubelet that was just started knows, but for the keep directories: rules hold in every mode, and a directory of
 * them that vanished is only noticed by who knows that it was there.
 */
const forgotten = ({ keepDirectories }: Ledger): Ledger => ({ ...emptyLedger, keepDirectories });

function forgetfulMemory(recorder: Pick<Recorder, "ledger" | "saveLedger">): LedgerMemory {
  const memory = volatileMemory(forgotten(recorder.ledger()));
  return {
    current: () => memory.current(),
    replace: (next) => {
      const { images: known, keepDirectories } = memory.current();
      const learned = next.keepDirectories.length > keepDirectories.length;
      memory.replace(next);
      const before = recorder.ledger();
      const images = stillThere(before.images, next.images, changedKeys(next.images, known));
      if (learned || images.size < before.images.size)
        recorder.saveLedger({ ...before, images, keepDirectories: next.keepDirectories });
    },
  };
}

/** What is gone, or has other names, is forgotten on disk too: should it come back when we remember again, it is new. */
function stillThere(
  before: Ledger["images"],
  next: Ledger["images"],
  changed: Iterable<ImageId> | null,
): Ledger["images"] {
  let images = before;
  for (const id of changed ?? before.keys())
    if (next.get(id)?.names !== before.get(id)?.names) images = withoutKey(images, id);
  return images;
}

const refuse = async (): Promise<never> => {
  throw new AssertionError("a dry run removes nothing");
};
/** The second fence of a dry run: the first is that nothing is executed. */
const noWriter: Engine["writer"] = {
  removeImage: refuse,
  stopContainer: refuse,
  removeContainer: refuse,
  stopSandbox: refuse,
  removeSandbox: refuse,
  execSync: refuse,
};
const noRemover: Engine["remover"] = {
  removeContainerLogs: refuse,
  removeLegacyLink: refuse,
  removePodLogs: refuse,
  placesOf: refuse,
};

function passLock(parts: EngineParts): PassLock {
  return {
    acquire: async (waitMs, signal) => {
      const attempt = await acquireLock(
        {
          name: "pass",
          endpoint: parts.connected.endpoint,
          holder: `${parts.holder}, process ${parts.self.pid}`,
          waitMs,
          signal,
        },
        lockPlaces(parts.config(), parts.self),
      );
      if (attempt.kind === "aborted")
        throw new HostError("lock", "stopped while waiting for the lock");
      if (attempt.kind !== "acquired") return null;
      // What the pass before ours left, whoever made it.
      await parts.state.recorder?.refresh();
      return () => attempt.lock.release();
    },
  };
}

export const lockPlaces = (config: Config, self: Process) => ({
  systemRun: SYSTEM_RUN,
  runDirectory: config.paths.runDir,
  userId: self.userId,
});

export interface CollectorParts {
  readonly self: Process;
  readonly journalOf: (recorder: Recorder | null) => {
    readonly journal: Journal;
    readonly log: OpenCollector["log"];
    /** Waits, for a bounded time, for those that were told of the pass. */
    readonly ended: () => Promise<void>;
  };
  readonly starting: OpenCollector["starting"];
  readonly onCall?: (call: CallRecord) => void;
}

/** A node for one pass of `gc`. */
export async function openCollector(config: Config, parts: CollectorParts): Promise<OpenCollector> {
  const connected = await connect(config, parts.onCall);
  const host = await hostOf(() => config);
  const notices: string[] = [];
  // The log comes after the recorder, and what is wrong with the disk may show before and after.
  let told = (message: string): void => void notices.push(message);
  const state = await openState(config, parts.self, (notice) => told(notice.message));
  const { journal, log, ended } = parts.journalOf(state.recorder);
  told = (message) => log.warning(message);
  const engine = engineOf({
    config: () => config,
    connected,
    host,
    state,
    journal,
    self: parts.self,
    startedAt: null,
    holder: "crigc gc",
  });
  return {
    engine,
    log,
    notices,
    starting: parts.starting,
    close: async () => {
      connected.runtime.close();
      await state.recorder?.close();
      await ended();
      log.flush();
    },
  };
}
