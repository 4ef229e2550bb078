/** Connects to the runtime, and opens a node for reading, without anything that could remove, or for collection. */

import { realpath } from "node:fs/promises";

import type { Config } from "../config/config.ts";
import type { Runtime } from "../cri/client.ts";
import { parseEndpoint } from "../cri/endpoint.ts";
import { Backoff } from "../gc/calls.ts";
import { LogUsers } from "../gc/log-users.ts";
import { type Engine, type PassLock, type ReadEngine, volatileMemory } from "../gc/ports.ts";
import { AssertionError } from "../model/assert.ts";
import { HostError, usageError } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import type {
  CallRecord,
  LedgerMemory,
  RuntimeReader,
  UsedLog,
  WriterPresence,
} from "../model/ports.ts";
import type { Instant } from "../model/time.ts";
import { readClocks, timer, wallClock } from "../node/clock.ts";
import { commitBy } from "../node/disk.ts";
import { socketFiles } from "../node/files.ts";
import { readHold } from "../node/hold.ts";
import { sendHook } from "../node/http.ts";
import type { NodeKubelet } from "../node/kubelet/settings.ts";
import { acquireLock, type LockPlaces } from "../node/lock.ts";
import { logDeleter } from "../node/log-remover.ts";
import { collectIfGrown, compileWhenBusy } from "../node/process.ts";
import { enterWriters, otherWriters } from "../node/writers.ts";
import type { StoreNotice } from "../store/errors.ts";
import { openStore, openStoreReader } from "../store/open.ts";
import type { Recorder } from "../store/recorder.ts";
import { eventSource } from "./events.ts";
import { type Host, hostOf } from "./host.ts";
import { journalOf, type JournalOptions } from "./journal.ts";
import { forgotten, kubeletMemory, type KubeletStart } from "./kubelet-memory.ts";
import { processChannel } from "./state-process.ts";
import { COMMIT_PROCESS, type Process } from "./world.ts";

/** Where to look for holds and locks besides the configured directories. */
const SYSTEM_RUN = "/run";

export type OpenNode = Awaited<ReturnType<typeof openNode>>;

/** A node for reading: cannot remove anything, and creates or changes no file of the state directory. */
export async function openNode(config: Config, kubelet: NodeKubelet) {
  const notices: string[] = [];
  const notify = ({ message }: StoreNotice): void => void notices.push(message);
  const opened = async () =>
    [await hostOf(() => config, kubelet.found), ledgerOnDisk(config, notify)] as const;
  const [{ runtime }, [host, ledger]] = await Promise.all([connect(config), opened()]);
  const memory = volatileMemory(known(config, ledger));
  const engine: ReadEngine = { ...reading(() => config, runtime, host), memory };
  return {
    engine,
    /** On disk; with `compat: kubelet` the engine has its own. */
    ledger,
    /** Warnings: the ledger is broken, of another version or unreadable. */
    notices: notices as readonly string[],
    [Symbol.dispose]: () => runtime.close(),
  };
}

const reading = (config: () => Config, runtime: Runtime, host: Host) => ({
  observe: { runtime: runtime.reader, disk: host.disk, host: host.reader },
  timer,
  limits: () => config().limits,
  hold: () => readHold(config().values, wallClock()),
  remover: {
    placesOf: (logs: readonly UsedLog[]) => logDeleter(config().values).placesOf(logs),
  },
  startedAt: null,
  stepDone: () => collectIfGrown(),
});

export interface CollectorOptions extends Pick<JournalOptions, "log" | "onPass" | "onEvent"> {
  readonly config: () => Config;
  readonly connected: Connected;
  readonly self: Process;
  readonly kubelet: NodeKubelet;
  readonly startedAt: Instant | null;
  /** Name of the holder, for others that find the lock held: `crigc gc`. */
  readonly holder: string;
}

/** What a removing pass of `gc` or the agent needs, with its recorder; none for a dry run. */
export async function openEngine(
  options: CollectorOptions,
): Promise<{ readonly engine: Engine; readonly recorder: Recorder | null }> {
  const { config, connected, self, log, startedAt } = options;
  const { values } = config();
  const { runtime } = connected;
  const host = await hostOf(config, options.kubelet.look);
  const { memory, recorder } = await openState(config(), self, ({ message }) =>
    log().warning(message),
  );
  const reader = reading(config, runtime, host);
  const engine: Engine = {
    ...reader,
    memory,
    startedAt,
    writer: values.dryRun ? noWriter : runtime.writer,
    remover: values.dryRun ? { ...noRemover, ...reader.remover } : logDeleter(values),
    logUsers: new LogUsers(runtime.reader, timer),
    backoff: new Backoff(timer),
    hooks: { get: sendHook },
    commit: commitBy([...self.program, COMMIT_PROCESS]),
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
  self: Process,
  notify: (notice: StoreNotice) => void,
): Promise<OpenState> {
  const directory = config.values.stateDir;
  if (config.values.dryRun) {
    const ledger = ledgerOnDisk(config, notify);
    return { memory: volatileMemory(known(config, ledger)), recorder: null };
  }
  const presence = enteredWriters(directory, lockPlaces(config, self));
  const channel = processChannel({ program: self.program, directory, writer: presence?.id });
  const recorder = await openStore({ channel, directory, presence, notify });
  const memory: LedgerMemory =
    config.values.compat === "kubelet"
      ? kubeletMemory(recorder, kubeletStart(config))
      : { current: () => recorder.ledger(), replace: (next) => recorder.saveLedger(next) };
  return { memory, recorder };
}

/** What a process that starts now knows. */
const known = (config: Config, ledger: Ledger): Ledger =>
  config.values.compat === "kubelet" ? forgotten(ledger, kubeletStart(config)) : ledger;

const kubeletStart = (config: Config): KubeletStart => ({
  clocks: readClocks(),
  limits: config.limits.memory,
});

function ledgerOnDisk({ values }: Config, notify: (notice: StoreNotice) => void): Ledger {
  const { stateDir, runDir } = values;
  const others = () =>
    otherWriters(stateDir, { systemRun: SYSTEM_RUN, runDirectory: runDir, userId: 0 });
  using store = openStoreReader({ directory: stateDir, notify, others });
  return store.ledger();
}

/** Where no lock can be taken, no pass begins either, and says why. */
function enteredWriters(directory: string, places: LockPlaces): WriterPresence | undefined {
  try {
    return enterWriters(directory, places);
  } catch (thrown) {
    if (thrown instanceof HostError) return undefined;
    throw thrown;
  }
}

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
const noRemover: Omit<Engine["remover"], "placesOf"> = {
  removeContainerLogs: refuse,
  removeLegacyLink: refuse,
  removePodLogs: refuse,
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

export const lockPlaces = (config: Config, self: Pick<Process, "userId">): LockPlaces => ({
  systemRun: SYSTEM_RUN,
  runDirectory: config.values.runDir,
  userId: self.userId,
});

export interface Connected {
  readonly runtime: Runtime;
  /** `unix:///…`, for the lock and for messages. */
  readonly endpoint: string;
}

/** Loaded on demand: commands without calls need not load gRPC, which takes 15 MB. */
const discovery = async () => import("../cri/discover.ts");

/** Throws `RuntimeError` within two seconds if nothing answers `runtime.v1`, not after the deadline of a call. */
export async function connect(
  config: Config,
  onCall: (call: CallRecord) => void = () => undefined,
): Promise<Connected> {
  const endpoint = await runtimeEndpoint(config);
  const imageEndpoint =
    config.values.imageServiceEndpoint === null
      ? endpoint
      : parsed(config.values.imageServiceEndpoint);
  if (imageEndpoint !== endpoint) await (await discovery()).probeImageEndpoint(imageEndpoint);
  const { openRuntime } = await import("../cri/client.ts");
  const busy = compileWhenBusy(() => performance.now());
  const runtime = openRuntime({
    endpoint,
    imageEndpoint,
    requestTimeout: config.values.runtimeRequestTimeout,
    onCall: (call) => {
      busy();
      collectIfGrown(/^(?:List|Stream)/.test(call.method) ? 1 : CALL_WEIGHT);
      onCall(call);
    },
    onNewEntry: () => {
      busy(CALLS_OF_ENTRY);
      collectIfGrown(CALL_WEIGHT * CALLS_OF_ENTRY);
    },
  });
  const reader: RuntimeReader = {
    ...runtime.reader,
    info: async (signal) => ({
      ...(await runtime.reader.info(signal)),
      instance: instanceOf(imageEndpoint),
    }),
  };
  return { runtime: { ...runtime, reader }, endpoint };
}

/** A runtime creates its socket anew at each start. */
function instanceOf(endpoint: string): string {
  try {
    return socketFiles.identityOf(endpoint.slice("unix://".length)) ?? "";
  } catch {
    return "";
  }
}

/** A call, as a part of a check of the memory; a list that was read leaves tens of megabytes of garbage. */
const CALL_WEIGHT = 1 / 32;
/** Weight of a list entry in the decisions to compile hot code and to collect garbage. */
const CALLS_OF_ENTRY = 0.05;

/** Longer than when probing several: a configured runtime may be busy. */
const NAMED_PROBE_MS = 1_500;

async function runtimeEndpoint(config: Config): Promise<string> {
  const named = config.values.containerRuntimeEndpoint;
  const { discoverEndpoint, probeEndpoint } = await discovery();
  if (named === null) return (await discoverEndpoint({ realPath: realpath })).endpoint;
  return (await probeEndpoint(parsed(named), NAMED_PROBE_MS)).endpoint;
}

/** The configuration has validated the text already; errors read the same. */
function parsed(text: string): string {
  const endpoint = parseEndpoint(text);
  if (endpoint.kind === "refused")
    throw usageError("endpoint", text, `invalid endpoint ${text}: ${endpoint.message}`);
  return endpoint.endpoint;
}
