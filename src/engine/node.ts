/** Opens a node for reading, without anything that could remove, or for collection; and the machine as it is observed. */

import type { Config } from "../config/config.ts";
import type { Runtime } from "../cri/client.ts";
import { PassMemory } from "../gc/pass-memory.ts";
import { type Engine, type Journal, type ReadEngine, volatileMemory } from "../gc/ports.ts";
import { AssertionError, messageOf } from "../model/errors.ts";
import type { DiskReader, HostReader } from "../model/ports.ts";
import type { PodReading } from "../model/snapshot.ts";
import { readClocks, timer } from "../node/clock.ts";
import { commitBy, diskOf } from "../node/disk.ts";
import { readHold } from "../node/hold.ts";
import { sendHook } from "../node/http.ts";
import { hadKeepRules, readKeepRules, setHadKeepRules } from "../node/keep-files.ts";
import { readPodDirectories, readPods, rootDirectoryOf } from "../node/kubelet/pods.ts";
import { PodSpecReader } from "../node/kubelet/specs.ts";
import { logDeleter, logReader } from "../node/logs.ts";
import { collectIfGrown } from "../node/process.ts";
import { parseKeepPattern } from "../policy/keep/keep-pattern.ts";
import { parseKeepFile } from "../policy/keep/keep.ts";
import { kubeletPolicy } from "../policy/kubelet/kubelet.ts";
import { defaultPolicy, type Policy } from "../policy/policy.ts";
import { journalOf, logListener } from "./journal.ts";
import { openState, stateOnDisk } from "./ledger.ts";
import type { Log } from "./log.ts";
import { onRuntimeOf, type Owner } from "./owner.ts";
import { connect, type Connected } from "./runtime.ts";
import { COMMIT_PROCESS, type Process } from "./world.ts";

/** How long an orderly end waits for the state directory. */
const CLOSE_MS = 5_000;

export type OpenNode = Awaited<ReturnType<typeof openNode>>;

/** A node for reading: cannot remove anything, and creates or changes no file of the state directory. */
export async function openNode(config: Config, self: Pick<Process, "userId">, owner: Owner | null) {
  const notices: string[] = [];
  const notify = (notice: string): void => void notices.push(notice);
  const host = hostOf(config, (error) => (error === null ? undefined : notify(error)));
  const { runtime } = await connect(onRuntimeOf(owner, config));
  const ledger =
    owner === null ? stateOnDisk(config, self, notify).ledger() : owner.memory.current();
  const engine: ReadEngine = {
    ...reading(config, { runtime, host, owner }),
    policy: policyOf(config, false),
    memory: volatileMemory(ledger),
  };
  return {
    engine,
    /** Warnings: the ledger is broken, of another version or unreadable. */
    notices: notices as readonly string[],
    [Symbol.dispose]: () => runtime.close(),
  };
}

/** The rules in force, for the life of a process. */
export const policyOf = ({ values }: Pick<Config, "values">, isAgent: boolean): Policy =>
  values.compat === "kubelet" ? kubeletPolicy(isAgent ? readClocks().uptime : null) : defaultPolicy;

interface Opened {
  readonly runtime: Runtime;
  readonly host: Host;
  readonly owner: Owner | null;
}

const reading = (config: Config, { runtime, host, owner }: Opened) => ({
  observe: {
    runtime: runtime.reader,
    disk: host.disk,
    host: host.reader,
  },
  timer,
  passes: owner?.passes ?? new PassMemory(timer),
  limits: () => config.limits,
  hold: () => readHold(config.values.stateDir),
  stepDone: () => {
    owner?.progressed();
    collectIfGrown();
  },
});

export interface CollectorOptions {
  readonly config: Config;
  readonly connected: Connected;
  readonly self: Process;
  /** The agent that runs this command; `null`: this process opens the state directory. */
  readonly owner: Owner | null;
  readonly log: Log;
  readonly isAgent: boolean;
  /** Must not throw. */
  readonly listener: Partial<Journal>;
}

/** What `gc` or the agent needs to remove. */
export async function openEngine(options: CollectorOptions) {
  const { config, connected, self, owner, log, isAgent, listener } = options;
  const { values } = config;
  const { runtime } = connected;
  const host = hostOf(config, (error) => {
    if (error === null) log.success("kubelet", "Reading the kubelet's pods");
    else log.failure("kubelet", error);
  });
  const { memory, recorder } =
    owner === null
      ? await openState(config, self, (message) => log.warning(message))
      : stateOf(owner, values);
  const reader = reading(config, { runtime, host, owner });
  const keepRules = () => recordedKeepRules(config, log);
  const engine: Engine = {
    ...reader,
    observe: { ...reader.observe, host: { ...host.reader, keepRules } },
    policy: policyOf(config, isAgent),
    memory,
    writer: values.dryRun ? noWriter : runtime.writer,
    remover: values.dryRun ? noRemover : logDeleter(values),
    hooks: { get: sendHook },
    commit: commitBy([...self.program, COMMIT_PROCESS]),
    // The agent records the pass, and the command logs it for its caller.
    journal: journalOf(
      ...(values.dryRun ? [] : [owner?.journal ?? recorder ?? {}]),
      logListener(log),
      listener,
    ),
  };
  return {
    engine,
    /** `null`: a dry run. */
    recorder,
    /** Writes what is still to be written, for a bounded time. */
    close: async (): Promise<void> => {
      if (owner === null) await recorder?.state.close(AbortSignal.timeout(CLOSE_MS));
    },
  };
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
const noRemover: Engine["remover"] = {
  removeContainerLogs: refuse,
  removeLink: refuse,
  removePodLogs: refuse,
};

/** A dry run changes nothing of the agent's. */
const stateOf = ({ memory, recorder }: Owner, { dryRun }: Config["values"]) =>
  dryRun ? { memory: volatileMemory(memory.current()), recorder: null } : { memory, recorder };

export interface Host {
  readonly disk: DiskReader;
  readonly reader: HostReader;
}

/** `onSpecs`: called with why the kubelet's pods could not be read, or `null`, after each reading. */
export function hostOf(
  config: Config,
  onSpecs: (error: string | null) => void,
  usualRoots?: readonly string[],
): Host {
  const { values, kubelet } = config;
  let root = rootDirectoryOf(values.rootDir, usualRoots);
  const specs = kubelet === null ? null : new PodSpecReader(kubelet, () => root);
  const withSpecs = async (pods: PodReading, signal: AbortSignal): Promise<PodReading> => {
    if (specs === null) return pods;
    const found = await specs.read(signal);
    onSpecs(found.error);
    return { ...pods, specs: found };
  };
  return {
    disk: diskOf(() => root),
    reader: {
      clocks: () => readClocks(),
      keepRules: () => keepRulesOf(config),
      pods: async (signal, before) => {
        // On its first boot a node may run crigc before its kubelet.
        if (root === "/") root = rootDirectoryOf(values.rootDir, usualRoots);
        const source = { source: values.podSource, rootDirectory: root };
        const pods = await readPods(source);
        if (before === undefined) return withSpecs(pods, signal);
        return before.specs === undefined ? pods : { ...pods, specs: before.specs };
      },
      newerPods: async (before, signal) =>
        (await specs?.isOutdated()) === true ? withSpecs(before, signal) : before,
      podDirectories: (since) => readPodDirectories(root, since),
      logs: logReader(values),
    },
  };
}

/** The current keep rules. */
export const keepRulesOf = (config: Config): ReturnType<HostReader["keepRules"]> =>
  readKeepRules({
    directory: config.values.keepDir,
    isNamed: config.sources.keepDir.kind !== "default",
    patterns: config.values.keep,
    infraImages: config.limits.images.infraImages,
    hadRules: () => hadKeepRules(config.values.stateDir, config.values.keepDir),
    parseFile: parseKeepFile,
    parsePattern: parseKeepPattern,
  });

/** Records that the keep directory has rules, so that a missing one is noticed later. */
async function recordedKeepRules(config: Config, log: Log): ReturnType<HostReader["keepRules"]> {
  const keep = await keepRulesOf(config);
  const { stateDir, keepDir, dryRun } = config.values;
  const isFromFile = keep.rules.some(({ source }) => source.startsWith(`${keepDir}/`));
  if (dryRun || !isFromFile) return keep;
  try {
    setHadKeepRules(stateDir, keepDir);
  } catch (thrown) {
    log.recurring("keep-directory", messageOf(thrown));
  }
  return keep;
}
