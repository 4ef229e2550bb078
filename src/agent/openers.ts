/** What commands can open: a node to read or to collect on, the state directory, the machine. */

import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import type { Config } from "../config/config.ts";
import type { Environment } from "../config/settings.ts";
import { RuntimeError } from "../model/errors.ts";
import { adoptBoot, readClocks, wallClock } from "../node/clock.ts";
import { directoryFact, filesIn, rootDirectoryId, walkDirectories } from "../node/directories.ts";
import { deviceOf } from "../node/disk.ts";
import { executableFault } from "../node/executable.ts";
import { writeAnswerFile, writeWholeFile } from "../node/files.ts";
import { type HoldRequest, readHold, releaseHold, writeHold } from "../node/hold.ts";
import { addressFault } from "../node/http.ts";
import { baselineStamp, readKeepFile, setBaselineStamp } from "../node/keep-files.ts";
import { kubeletFact } from "../node/kubelet/config-file.ts";
import { rootDirectoryOf } from "../node/kubelet/pods.ts";
import { clean } from "../report/terminal.ts";
import { humanDuration } from "../report/words.ts";
import { openStoreReader, type StoreReader } from "../store/open.ts";
import type { AgentRun } from "./agent.ts";
import { askAgent, CONTROL_SOCKET } from "./control.ts";
import { logOf } from "./log.ts";
import { keepRulesOf, openEngine, openNode } from "./node.ts";
import { connect } from "./runtime.ts";
import type { ProcessWorld } from "./world.ts";

const ANSWER_MS = 5_000;

export type Openers = ReturnType<typeof openersOf>;
export type OpenCollector = Awaited<ReturnType<typeof openCollector>>;

export function openersOf(world: ProcessWorld) {
  const { userId } = world.self;
  // A command that opens the state directory repeatedly gets the same warnings.
  const said = new Set<string>();
  const state = ({ values }: Config): StoreReader =>
    openStoreReader({
      directory: values.stateDir,
      notify: (message) => {
        if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
        said.add(message);
      },
    });
  return {
    userId,
    /** Rejects with `RuntimeError` if no runtime answers, or several do and none is configured. */
    node: (config: Config) => openNode(config),
    collector: (config: Config) => openCollector(config, world),
    /** Runs the agent; resolves with the exit code. */
    agent: async (run: AgentRun) => (await import("./agent.ts")).runAgent(run, world),
    state,
    now: wallClock,
    /** In a pod of our DaemonSet the host name is the pod's. */
    hostName: (env: Environment) => env["NODE_NAME"] ?? hostname(),
    /** The hold in the state directory or the run directory; either is in force. */
    hold: ({ values }: Config) => ({
      read: () => readHold(values, wallClock()),
      /** Replaces any hold; returns its file and its end. Throws `HostError` `write`. */
      set: (hold: Omit<HoldRequest, "by">) =>
        writeHold(values, { ...hold, by: `crigc hold, user ${userId}` }),
      /** `false`: there was none. Throws `HostError` `write` if one cannot be removed. */
      release: () => releaseHold(values),
    }),
    /** The keep rules as a pass would read them now, without a runtime. Does not reject for invalid rules. */
    keepRules: keepRulesOf,
    baseline,
    filesIn,
    /** Atomic. Throws `HostError` `write`. */
    writeFile: writeAnswerFile,
    /** The body of the agent's response. Throws `HostError` `http` if no agent answers. */
    askAgent: ({ values }: Config, path: string, timeoutMs = ANSWER_MS) =>
      askAgent({ socketPath: join(values.runDir, CONTROL_SOCKET), path, timeoutMs }),
    /** Tells whether another process has the same root directory. */
    rootDirectoryId,
    /** From here on this process tells boots apart as the agent does. */
    adoptBoot,
    machine: machineOf,
    walkDirectories,
  };
}

/** A node for collection; disposing of it writes what is still to be written, for a bounded time. */
async function openCollector(config: Config, world: ProcessWorld) {
  const log = logOf(config, world);
  const connected = await connect(config);
  const { engine, recorder, close } = await openEngine({
    config: () => config,
    connected,
    self: world.self,
    log: () => log,
    startedAt: null,
    holder: "crigc gc",
    onPass: () => undefined,
    onEvent: () => undefined,
  });
  return {
    engine,
    log,
    /** Waits until the pass is recorded, or `patience` aborts; returns the number of removals that are not. */
    recorded: async (patience: AbortSignal) =>
      (await recorder?.settle(patience, () =>
        log.warning(
          `waiting up to ${humanDuration(config.values.runtimeRequestTimeout)} to write the records of removals to the state directory; Ctrl-C ends the wait`,
        ),
      )) ?? 0,
    [Symbol.asyncDispose]: async () => {
      connected.runtime.close();
      await close();
      log.flush();
    },
  };
}

/** `baseline.list`, and the stamp of `keep baseline --once`. All throw `HostError`. */
function baseline({ values: { keepDir, stateDir } }: Config) {
  const path = join(keepDir, "baseline.list");
  return {
    path,
    /** `null`: does not exist. */
    read: () => readKeepFile(path),
    /** Atomic. */
    write: (text: string) => writeWholeFile(path, text),
    /** `null`: none yet. */
    stamp: () => baselineStamp(stateDir),
    setStamp: (at: string) => setBaselineStamp(stateDir, at),
  };
}

/** The facts for `doctor`, read without changing anything. */
function machineOf(config: Config) {
  return {
    /** "" if unreadable. */
    bootId: () => readClocks().bootId,
    sockets: () => socketFacts(config.values.containerRuntimeEndpoint),
    directory: directoryFact,
    /** The device of the filesystem that a path is or would be on, as in `Filesystem`; `null`: unknown. */
    device: (path: string) => deviceOf(path).catch(() => null),
    executableFault,
    addressFault,
    kubelet: () => kubeletFact(rootDirectoryOf(config.values.rootDir)),
  };
}

export interface SocketFact {
  readonly endpoint: string;
  readonly answer:
    | { readonly kind: "runtime"; readonly name: string; readonly version: string }
    | { readonly kind: "error"; readonly message: string };
}

/** The configured socket and all existing well-known ones, each real one once. */
async function socketFacts(named: string | null): Promise<readonly SocketFact[]> {
  const { wellKnownSockets } = await import("../cri/discover.ts");
  const real = new Map<string, string>();
  for (const path of wellKnownSockets) {
    const target = await realpath(path).catch(() => null);
    if (target !== null && !real.has(target)) real.set(target, path);
  }
  const found = Array.from(real.values(), (path) => `unix://${path}`);
  if (named !== null) found.unshift(named);
  return Promise.all(Array.from(new Set(found), socketFact));
}

async function socketFact(endpoint: string): Promise<SocketFact> {
  try {
    const { probeEndpoint } = await import("../cri/discover.ts");
    const { name, version } = await probeEndpoint(endpoint);
    return { endpoint, answer: { kind: "runtime", name, version } };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    return { endpoint, answer: { kind: "error", message: thrown.message } };
  }
}
