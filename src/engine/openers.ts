/** What commands can open: a node to read or to collect on, the state directory, the machine. */

import { hostname } from "node:os";
import { join } from "node:path";

import type { Config } from "../config/config.ts";
import type { Environment } from "../config/settings.ts";
import { Journal } from "../gc/journal.ts";
import { type PassEnd, type PassRequest, runPass } from "../gc/pass.ts";
import { toMs } from "../model/time.ts";
import { timer, wallClock } from "../node/clock.ts";
import { directoryFact, walkDirectories } from "../node/directories.ts";
import { deviceOf } from "../node/disk.ts";
import { writeAnswerFile, writeWholeFile } from "../node/files.ts";
import { type HoldRequest, readHold, releaseHold, writeHold } from "../node/hold.ts";
import { baselineStamp, readKeepFile, setBaselineStamp } from "../node/keep-files.ts";
import { kubeletFact, rootDirectoryOf } from "../node/kubelet/pods.ts";
import { holderWords, lockRuntime, lockState, type LockWait } from "../node/lock.ts";
import { clean } from "../report/terminal.ts";
import { askAgent } from "./client.ts";
import { logOf } from "./log.ts";
import {
  answeringRuntime,
  connect,
  type EngineOpening,
  keepRulesOf,
  openEngine,
  openNode,
  stateOnDisk,
} from "./node.ts";
import { agentHolding, onRuntimeOf, type Owner, type ProcessWorld } from "./owner.ts";

export type Openers = ReturnType<typeof openersOf>;
export type OpenCollector = Awaited<ReturnType<typeof openCollector>>;

/** `owner`: of the agent that runs the command; `null`: the command is the process. */
export function openersOf(world: ProcessWorld, owner: Owner | null = null) {
  const { self } = world;
  // A command that opens the state directory repeatedly gets the same warnings.
  const said = new Set<string>();
  const notify = (message: string): void => {
    if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
    said.add(message);
  };
  return {
    userId: self.userId,
    /** Rejects with `RuntimeError` if no runtime answers, or several do and none is configured. */
    node: (config: Config) => openNode({ config, self, owner, notify }),
    /** `isBrief`: logs one short line a removal, for a terminal. */
    collector: (config: Config, signal: AbortSignal, isBrief = false) =>
      openCollector(
        {
          config,
          self,
          owner,
          journal: new Journal(timer, [logOf(config, world.stderr, isBrief)]),
        },
        signal,
      ),
    /** The agent that holds the state directory or a runtime that the configuration may mean; `null`: none. */
    agentHolding,
    /** For the agent. */
    world,
    state: (config: Config) => stateOnDisk({ config, self, notify }),
    now: wallClock,
    /** In a pod of our DaemonSet the host name is the pod's. */
    hostName: (env: Environment) => env["NODE_NAME"] ?? hostname(),
    hold: ({ values: { stateDir } }: Config) => ({
      read: () => readHold(stateDir),
      /** Replaces any hold; returns its end. Throws `HostError` `write`. */
      set: (hold: HoldRequest) => writeHold(stateDir, hold),
      /** `false`: there was none. Throws `HostError` `write` if it cannot be removed. */
      release: () => releaseHold(stateDir),
    }),
    /** The keep rules as a pass would read them now, without a runtime. Does not reject for invalid rules. */
    keepRules: (config: Config) => keepRulesOf(config),
    baseline,
    /** Atomic. Throws `HostError` `write`. */
    writeFile: writeAnswerFile,
    /** The body of the agent's answer. Throws `HostError` `lock` if no agent answers. */
    askAgent: ({ values }: Config, path: string) => askAgent(values.runDir, path),
    machine: machineOf,
    walkDirectories,
  };
}

/** What a command asks of a pass; the rest depends on who runs it. */
export type CommandPass = Omit<PassRequest, "kind" | "preempt" | "dryRun">;

/**
 * A node for collection, whose locks this process holds until it is disposed of; or the agent's, for a command that the
 * agent runs. Disposing of it writes what is still to be written, for a bounded time. Throws `HostError` `lock` if another
 * process holds the node, `stopped` if `signal` aborts first.
 */
async function openCollector(
  opening: Pick<EngineOpening, "config" | "self" | "owner" | "journal">,
  signal: AbortSignal,
) {
  const { config, owner, journal } = opening;
  const { dryRun, runtimeRequestTimeout, stateDir } = config.values;
  const wait: LockWait = {
    waitMs: toMs(runtimeRequestTimeout),
    signal,
    onHeld: (holder) => journal.say(0, `waiting for ${holderWords(holder)}, which holds the node`),
  };
  await using opened = new AsyncDisposableStack();
  const connected = await connect(onRuntimeOf(owner, config));
  opened.defer(() => connected.runtime.close());
  // A dry run changes nothing, so it need not wait for a pass that does.
  if (owner === null && !dryRun) {
    opened.use(await lockState(stateDir, wait));
    opened.use(await lockRuntime(connected.endpoint, wait));
  }
  const { engine, recorded } = await openEngine({ ...opening, connected, isAgent: false });
  if (owner === null) opened.defer(async () => void (await recorded()));
  const kept = opened.move();
  return {
    engine,
    /** Runs one pass, in an agent while no other runs. Throws `HostError` as above. */
    pass: async (request: CommandPass): Promise<PassEnd> => {
      using turn = owner === null || dryRun ? null : await owner.turn(wait);
      const whole: PassRequest = {
        ...request,
        kind: "gc",
        dryRun,
        ...(turn !== null && { preempt: turn.preempt }),
      };
      return await runPass(engine, whole, signal);
    },
    /** After the last pass. */
    recorded,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
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
    /** Throws `RuntimeError`. */
    runtime: () => answeringRuntime(config),
    directory: directoryFact,
    /** The device of the filesystem that a path is or would be on, as in `Filesystem`; `null`: unknown. */
    device: (path: string) => deviceOf(path).catch(() => null),
    kubelet: () => kubeletFact(rootDirectoryOf(config.values.rootDir)),
  };
}
