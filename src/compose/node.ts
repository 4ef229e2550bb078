/** Opens a node for reading, without anything that could remove, or for collection. */

import type { OpenNode } from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import type { Runtime } from "../cri/client.ts";
import { Backoff } from "../execute/backoff.ts";
import { LogUsers } from "../execute/container/log-users.ts";
import { sendHook } from "../host/http/pre-stop.ts";
import type { Kubelet } from "../host/kubelet/settings.ts";
import { logDeleter } from "../host/logs/remover.ts";
import { giveBack, MUCH } from "../host/process/memory.ts";
import { readHold } from "../host/state/hold.ts";
import { acquireLock } from "../host/state/lock.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { wallClock } from "../host/time/clock.ts";
import { timer } from "../host/time/timer.ts";
import { type Engine, type PassLock, volatileMemory } from "../loop/ports.ts";
import { AssertionError } from "../model/assert.ts";
import { HostError } from "../model/errors.ts";
import type { ImageId, PodUid } from "../model/ids.ts";
import { changedKeys, withEntry, withoutKey } from "../model/layered-map.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../model/ledger.ts";
import type { LedgerMemory } from "../model/ports.ts";
import type { Instant, Watched } from "../model/time.ts";
import type { Recorder } from "../store/history/recorder.ts";
import type { StoreNotice } from "../store/notice.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import { eventSource } from "./events.ts";
import { type Host, hostOf } from "./host.ts";
import { journalOf, type JournalOptions } from "./journal.ts";
import { connect, type Connected } from "./runtime.ts";
import { processChannel } from "./state-process.ts";
import type { Process } from "./world.ts";

/** Where to look for holds and locks besides the configured directories. */
const SYSTEM_RUN = "/run";

/** `kubeletOfNode`: as read for the configuration, because examining all processes takes milliseconds. */
export async function openNode(
  config: Config,
  kubeletOfNode: () => Kubelet | null,
): Promise<OpenNode> {
  const notices: string[] = [];
  const opened = async () => {
    const host = await hostOf(
      () => config,
      () => kubeletOfNode() ?? { rootDirectory: null },
    );
    return { host, ledger: ledgerOnDisk(config, ({ message }) => notices.push(message)) };
  };
  const [{ runtime }, { host, ledger }] = await Promise.all([connect(config), opened()]);
  return {
    ledger,
    // Also with compat kubelet: a kubelet that forgot everything would find every image too young.
    engine: { ...reading(() => config, runtime, host), memory: volatileMemory(ledger) },
    notices,
    [Symbol.dispose]: () => runtime.close(),
  };
}

const reading = (config: () => Config, runtime: Runtime, host: Host) => ({
  observe: { runtime: runtime.reader, disk: host.disk, host: host.reader },
  timer,
  limits: () => config().limits,
  hold: () => readHold(config().paths, wallClock()),
  startedAt: null,
  stepDone: () => giveBack(MUCH),
});

export interface CollectorOptions extends Pick<JournalOptions, "log" | "onPass" | "onEvent"> {
  readonly config: () => Config;
  readonly connected: Connected;
  readonly self: Process;
  readonly startedAt: Instant | null;
  /** Name of the holder, for others that find the lock held: `crigc gc`. */
  readonly holder: string;
}

/** What a removing pass of `gc` or the agent needs, with its recorder; none for a dry run. */
export async function openEngine(
  options: CollectorOptions,
): Promise<{ readonly engine: Engine; readonly recorder: Recorder | null }> {
  const { config, connected, self, log, startedAt } = options;
  const { dryRun, paths } = config();
  const { runtime } = connected;
  const host = await hostOf(config);
  const { memory, recorder } = await openState(config(), self, ({ message }) =>
    log().warning(message),
  );
  const engine: Engine = {
    ...reading(config, runtime, host),
    memory,
    startedAt,
    writer: dryRun ? noWriter : runtime.writer,
    remover: dryRun ? noRemover : logDeleter(paths),
    logUsers: new LogUsers(runtime.reader, timer),
    backoff: new Backoff(timer),
    hooks: { get: sendHook },
    journal: journalOf({ ...options, recorder, now: () => host.reader.clocks().wall }),
    lock: passLock(options, recorder),
    events: eventSource(runtime, () => timer.monotonicNs()),
  };
  return { engine, recorder };
}

/** The ledger and the recorder; a dry run records nothing and has its own ledger. */
export interface OpenState {
  readonly memory: LedgerMemory;
  readonly recorder: Recorder | null;
}

/**
 * The kubelet forgets images when its process ends. crigc keeps its ledger on disk, and with compat kubelet leaves valid
 * records there.
 */
export async function openState(
  config: Config,
  { program }: Pick<Process, "program">,
  notify: (notice: StoreNotice) => void,
): Promise<OpenState> {
  const directory = config.paths.stateDir;
  if (config.dryRun) {
    const ledger = ledgerOnDisk(config, notify);
    const known = config.compat === "kubelet" ? forgotten(ledger) : ledger;
    return { memory: volatileMemory(known), recorder: null };
  }
  const channel = processChannel({ program, directory });
  const recorder = await openStore({ channel, directory, notify });
  const memory: LedgerMemory =
    config.compat === "kubelet"
      ? kubeletMemory(recorder)
      : { current: () => recorder.ledger(), replace: (next) => recorder.saveLedger(next) };
  return { memory, recorder };
}

function ledgerOnDisk({ paths }: Config, notify: (notice: StoreNotice) => void): Ledger {
  using store = openStoreReader({ directory: paths.stateDir, files: stateFiles, notify });
  return store.ledger();
}

/**
 * The ledger of a kubelet that just started: no images. Keep rules apply in every mode, and only the ledger knows whether a
 * missing keep directory once existed. What a kubelet knows of pods at once, crigc knows after two passes.
 */
const forgotten = ({ images, keepDirectories, pods }: Ledger): Ledger => ({
  ...emptyLedger,
  keepDirectories,
  images: seenNow(images, wallClock()),
  pods: deadSince(pods, () => emptyLedger.watched),
});

/** Only the names of images, for keep rules. */
const seenNow = (images: Ledger["images"], firstSeenAt: Instant): Ledger["images"] =>
  new Map(
    [...images].map(([id, { names, earlierNames, sizeBytes }]) => [
      id,
      {
        firstSeenAt,
        firstSeenWatched: emptyLedger.watched,
        lastUsedAt: null,
        lastUsedWatched: null,
        names,
        earlierNames,
        sizeBytes,
        ghost: null,
      },
    ]),
  );

function kubeletMemory(recorder: Pick<Recorder, "ledger" | "saveLedger">): LedgerMemory {
  const memory = volatileMemory(forgotten(recorder.ledger()));
  return {
    current: () => memory.current(),
    replace: (next) => {
      const { images: known, keepDirectories, pods } = memory.current();
      const learned = next.keepDirectories.length > keepDirectories.length || next.pods !== pods;
      memory.replace(next);
      const before = recorder.ledger();
      const images = stillThere(before.images, next.images, changedKeys(next.images, known));
      if (learned || images !== before.images)
        recorder.saveLedger({
          ...before,
          images,
          keepDirectories: next.keepDirectories,
          pods: deadSince(
            next.pods,
            (uid) => before.pods.get(uid)?.deadSinceWatched ?? before.watched,
          ),
        });
    },
  };
}

/** The same records on another clock: this process counts time from its start, and that of the ledger on disk does not advance. */
const deadSince = (pods: Ledger["pods"], since: (uid: PodUid) => Watched): Ledger["pods"] =>
  new Map(
    [...pods].map(([uid, record]) => [
      uid,
      record.deadSinceWatched === null ? record : { ...record, deadSinceWatched: since(uid) },
    ]),
  );

/** An image that vanished or was renamed is new on disk too; its earlier names stay. */
function stillThere(
  before: Ledger["images"],
  next: Ledger["images"],
  changed: Iterable<ImageId> | null,
): Ledger["images"] {
  let images = before;
  for (const id of changed ?? before.keys()) {
    const [known, now] = [before.get(id), next.get(id)];
    if (known === undefined || known.names === now?.names) continue;
    if (now === undefined) images = withoutKey(images, id);
    else {
      const renamed = renamedTo(known, now);
      if (renamed.earlierNames.join() !== known.earlierNames.join() || known.names !== OTHER_NAMES)
        images = withEntry(images, id, renamed);
    }
  }
  return images;
}

/** Matches no image's names, so that any image counts as renamed. */
const OTHER_NAMES = "\n";

const renamedTo = (known: ImageRecord, { names, earlierNames }: ImageRecord): ImageRecord => ({
  ...known,
  names: OTHER_NAMES,
  earlierNames: [...new Set([...names.split("\n"), ...earlierNames])].filter((name) => name !== ""),
});

const refuse = async (): Promise<never> => {
  throw new AssertionError("a dry run removes nothing");
};
/** A second safeguard of a dry run, which executes nothing anyway. */
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

function passLock(options: CollectorOptions, recorder: Recorder | null): PassLock {
  const { config, connected, self, holder } = options;
  return {
    acquire: async (waitMs, signal) => {
      const attempt = await acquireLock(
        {
          name: "pass",
          endpoint: connected.endpoint,
          holder: `${holder}, process ${self.pid}`,
          waitMs,
          signal,
        },
        lockPlaces(config(), self),
      );
      if (attempt.kind === "aborted")
        throw new HostError("lock", "stopped while waiting for the lock");
      if (attempt.kind !== "acquired") return null;
      // The result of the previous pass, by any process.
      await recorder?.refresh();
      return () => attempt.lock.release();
    },
  };
}

export const lockPlaces = (config: Config, self: Process) => ({
  systemRun: SYSTEM_RUN,
  runDirectory: config.paths.runDir,
  userId: self.userId,
});
