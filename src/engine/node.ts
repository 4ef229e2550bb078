/** Opens a node for reading, without anything that could remove, or for collection; and the machine as it is observed. */

import { realpath, stat } from "node:fs/promises";

import type { Config } from "../config/config.ts";
import type { Runtime } from "../cri/client.ts";
import type { Answering } from "../cri/discover.ts";
import type { Journal } from "../gc/journal.ts";
import type { ObservePorts } from "../gc/observe.ts";
import { PassMemory } from "../gc/pass-memory.ts";
import { type Engine, type ReadEngine, volatileMemory } from "../gc/ports.ts";
import { AssertionError, messageOf, RuntimeError } from "../model/errors.ts";
import type { Ledger } from "../model/ledger.ts";
import { machineId, readClocks, timer, wallClock } from "../node/clock.ts";
import { commitBy, diskOf } from "../node/disk.ts";
import { readHold } from "../node/hold.ts";
import { sendHook } from "../node/http.ts";
import { hadKeepRules, readKeepRules, setHadKeepRules } from "../node/keep-files.ts";
import { readPodDirectories, readPods, rootDirectoryOf } from "../node/kubelet/pods.ts";
import { podSpecReader } from "../node/kubelet/specs.ts";
import { lockHolder } from "../node/lock.ts";
import { logDeleter, logReader } from "../node/logs.ts";
import { collectIfGrown, COMMIT_PROCESS, compileWhenBusy } from "../node/process.ts";
import { parseKeepFile, parseKeepPattern } from "../policy/keep/keep.ts";
import { kubeletPolicy } from "../policy/kubelet/kubelet.ts";
import { defaultPolicy, type Policy } from "../policy/policy.ts";
import { openReader, type StateReader } from "../state/reader.ts";
import { Recorder } from "../state/recorder.ts";
import { State } from "../state/state.ts";
import { onRuntimeOf, type Owner, type Process } from "./owner.ts";

/** How long an orderly end waits for the state directory. */
const PATIENCE_MS = 5_000;

export interface Opening {
  readonly config: Config;
  readonly self: Process;
  /** The agent that runs the command; `null`: the command, or the agent, is this process. */
  readonly owner: Owner | null;
  /** Gets warnings: the ledger is broken, of another version or unreadable. */
  readonly notify: (message: string) => void;
}

export type OpenNode = Awaited<ReturnType<typeof openNode>>;

/** A node for reading: cannot remove anything, and creates or changes no file of the state directory. */
export async function openNode(opening: Opening) {
  const { config, owner, notify } = opening;
  const host = hostOf(config, (error) => (error === null ? undefined : notify(error)));
  const { runtime } = await connect(onRuntimeOf(owner, config));
  const engine = readEngine(opening, {
    observe: { runtime: runtime.reader, ...host },
    memory: volatileMemory(ledgerOf(opening)),
    policy: policyOf(config, false),
  });
  return { engine, [Symbol.dispose]: () => runtime.close() };
}

const ledgerOf = ({ owner, ...opening }: Opening): Ledger =>
  owner === null ? stateOnDisk(opening).ledger : owner.memory.current();

/** The rules in force, for the life of a process. */
export const policyOf = ({ values }: Pick<Config, "values">, isAgent: boolean): Policy =>
  values.compat === "kubelet" ? kubeletPolicy(isAgent ? readClocks().uptime : null) : defaultPolicy;

const readEngine = (
  { config, owner }: Pick<Opening, "config" | "owner">,
  ports: Pick<ReadEngine, "observe" | "memory" | "policy">,
): ReadEngine => ({
  ...ports,
  timer,
  passes: owner?.passes ?? new PassMemory(timer),
  limits: () => config.limits,
  hold: () => readHold(config.values.stateDir),
  stepDone: () => {
    owner?.progressed();
    collectIfGrown();
  },
});

export interface EngineOpening extends Omit<Opening, "notify"> {
  readonly connected: Connected;
  readonly journal: Journal;
  readonly isAgent: boolean;
}

/** What `gc` or the agent needs to remove. */
export async function openEngine({ connected, journal, isAgent, ...rest }: EngineOpening) {
  const opening: Opening = { ...rest, notify: (message) => journal.say("warning", message) };
  const { config, owner, self } = opening;
  const { values } = config;
  const { runtime } = connected;
  const { disk, host } = hostOf(config, (error) => {
    if (error === null) journal.ends("kubelet", "reading the kubelet's pods succeeded");
    else journal.begins("kubelet", error);
  });
  const { memory, recorder } = values.dryRun
    ? { memory: volatileMemory(ledgerOf(opening)), recorder: null }
    : (owner ?? (await openState(opening)));
  const keepRules = () => keepRulesOf(config, journal);
  const engine: Engine = {
    ...readEngine(opening, {
      observe: { runtime: runtime.reader, disk, host: { ...host, keepRules } },
      memory,
      policy: policyOf(config, isAgent),
    }),
    writer: values.dryRun ? refusing(runtime.writer) : runtime.writer,
    remover: values.dryRun ? refusing(logDeleter(values)) : logDeleter(values),
    hooks: { get: sendHook },
    commit: commitBy([...self.program, COMMIT_PROCESS]),
    // The agent records the pass, and the command logs it for its caller.
    journal: recorder === null ? journal : journal.with(owner?.journal ?? recorder),
  };
  return {
    engine,
    /** `null`: a dry run. */
    recorder,
    /** Waits a bounded time for what is still to be written. Returns the number of removals that the history lacks. */
    recorded: async (): Promise<number> => {
      const state = recorder?.state;
      return (await (owner === null ? state?.close(PATIENCE_MS) : state?.flush(PATIENCE_MS))) ?? 0;
    },
  };
}

/** A second safeguard of a dry run, which executes nothing anyway. */
const refusing = <Port extends object>(port: Port): Port =>
  new Proxy(port, {
    get: () => () => {
      throw new AssertionError("a dry run removes nothing");
    },
  });

/** `onSpecs`: called with why the kubelet's pods could not be read, or `null`, after each reading. */
export function hostOf(
  config: Config,
  onSpecs: (error: string | null) => void,
  usualRoots?: readonly string[],
): Omit<ObservePorts, "runtime"> {
  const { values, kubelet } = config;
  let root = rootDirectoryOf(values.rootDir, usualRoots);
  const readSpecs = kubelet === null ? null : podSpecReader(kubelet, () => root);
  return {
    disk: diskOf(() => root),
    host: {
      clocks: readClocks,
      keepRules: () => keepRulesOf(config),
      pods: async (signal) => {
        // On its first boot a node may run crigc before its kubelet.
        if (root === "/") root = rootDirectoryOf(values.rootDir, usualRoots);
        const source = { source: values.podSource, rootDirectory: root };
        const pods = await readPods(source);
        if (readSpecs === null) return pods;
        const specs = await readSpecs(signal);
        onSpecs(specs.error);
        return { ...pods, specs };
      },
      podDirectories: (since) => readPodDirectories(root, since),
      logs: logReader(values),
    },
  };
}

/** The current keep rules. `journal`: of a process that records that the directory has some, so that it notices a missing one. */
export async function keepRulesOf(config: Config, journal: Journal | null = null) {
  const { keep: patterns, keepDir: directory, stateDir, dryRun } = config.values;
  const keep = await readKeepRules({
    directory,
    isNamed: config.sources.keepDir.kind !== "default",
    patterns,
    infraImages: config.limits.images.infraImages,
    hadRules: () => hadKeepRules(stateDir, directory),
    parseFile: parseKeepFile,
    parsePattern: parseKeepPattern,
  });
  const isFromFile = keep.rules.some(({ source }) => source.startsWith(`${directory}/`));
  if (journal === null || dryRun || !isFromFile) return keep;
  try {
    setHadKeepRules(stateDir, directory);
    journal.ends("keep-directory", "recording the keep directory succeeded");
  } catch (thrown) {
    journal.begins("keep-directory", messageOf(thrown));
  }
  return keep;
}

type StateOpening = Omit<Opening, "owner">;

const placesOf = ({ config: { values }, self, notify }: StateOpening) => ({
  directory: values.stateDir,
  runDirectory: values.runDir,
  userId: self.userId,
  machineId: machineId(),
  notify,
});

/** For a process that holds the node. */
async function openState(opening: StateOpening) {
  const state = await State.open(placesOf(opening));
  return { memory: state, recorder: new Recorder(state, wallClock) };
}

/** Changes nothing. */
export const stateOnDisk = (opening: StateOpening): StateReader =>
  // A ledger is closed only when its holder ends.
  openReader(placesOf(opening), lockHolder(opening.config.values.stateDir) === null);

export interface Connected {
  readonly runtime: Runtime;
  /** `unix:///…`, for the lock and for messages. */
  readonly endpoint: string;
}

/** Loaded on demand: commands without calls need not load gRPC, which takes 15 MB. */
const discovery = async () => import("../cri/discover.ts");

/** Throws `RuntimeError` within seconds if nothing answers `runtime.v1`, not after the deadline of a call. */
export async function connect(config: Config): Promise<Connected> {
  const { endpoint } = await answeringRuntime(config);
  const imageEndpoint = config.values.imageServiceEndpoint ?? endpoint;
  if (imageEndpoint !== endpoint) {
    await rejectFile(imageEndpoint, "--image-service-endpoint");
    await (await discovery()).probeImageEndpoint(imageEndpoint);
  }
  const { openRuntime } = await import("../cri/client.ts");
  const busy = compileWhenBusy(() => performance.now());
  const runtime = openRuntime({
    endpoint,
    imageEndpoint,
    requestTimeout: config.values.runtimeRequestTimeout,
    onCall: ({ method }) => {
      busy();
      collectIfGrown(/^(?:List|Stream)/.test(method) ? 1 : CALL_WEIGHT);
    },
    onNewEntry: () => {
      busy(CALLS_OF_ENTRY);
      collectIfGrown(CALL_WEIGHT * CALLS_OF_ENTRY);
    },
  });
  return { runtime, endpoint };
}

/** Share of a memory check that a call is worth; a list, which leaves tens of megabytes of garbage, is worth a whole one. */
const CALL_WEIGHT = 1 / 32;
/** Weight of a list entry in the decisions to compile hot code and to collect garbage. */
const CALLS_OF_ENTRY = 0.05;

/** The configured runtime, or the only one that answers. Throws `RuntimeError`. */
export async function answeringRuntime(config: Config): Promise<Answering> {
  const named = config.values.containerRuntimeEndpoint;
  const { discoverEndpoint, probeEndpoint } = await discovery();
  if (named === null) return discoverEndpoint(realpath);
  await rejectFile(named, "--container-runtime-endpoint");
  return probeEndpoint(named);
}

/** A file refuses connections as the socket of a stopped runtime does. Throws `RuntimeError` `not-cri`. */
async function rejectFile(endpoint: string, flag: string): Promise<void> {
  const found = await stat(endpoint.slice("unix://".length)).catch(() => null);
  if (found === null || found.isSocket()) return;
  const what = found.isDirectory() ? "a directory" : "a file";
  throw new RuntimeError("not-cri", `${endpoint} is ${what}, not a socket; set ${flag}`);
}
