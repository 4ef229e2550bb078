/** Who holds a node: its locks, the process, and what the agent shares with the commands that it runs. */

import type { Config } from "../config/config.ts";
import { knownSockets } from "../cri/runtimes.ts";
import type { PassMemory } from "../gc/pass-memory.ts";
import type { Journal } from "../gc/ports.ts";
import { HostError, usageError } from "../model/errors.ts";
import type { LedgerMemory } from "../model/ports.ts";
import {
  type Holder,
  holderWords,
  isAgent,
  isSameSocket,
  type Lock,
  lockDirectory,
  lockHolder,
  type LockWait,
  socketDirectory,
  stateDirectory,
} from "../node/lock.ts";
import type { Screen } from "../report/terminal.ts";
import type { Recorder } from "../state/recorder.ts";

/** A command line that the agent runs, with where its output goes. */
export interface CommandRequest {
  readonly argv: readonly string[];
  readonly screen: Screen;
  readonly user: string;
  /** Ends a pass after its removal in flight. */
  readonly signal: AbortSignal;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Throws `RuntimeError` while the runtime does not answer, `HostError` `lock` while another process holds the node. */
  readonly owner: () => Owner;
}

/** Resolves with the exit code. */
export type RunCommand = (request: CommandRequest) => Promise<number>;

/** What a command uses of the agent that runs it. */
export interface Owner {
  /** Of the runtime that it holds. */
  readonly endpoint: string;
  readonly memory: LedgerMemory;
  readonly passes: PassMemory;
  /** `null`: nothing is recorded. */
  readonly recorder: Recorder | null;
  /** Log, history, metrics and status of the agent. */
  readonly journal: Journal;
  /** Waits until no other pass runs. Throws `HostError` `lock` after `waitMs`. */
  readonly turn: (wait: Pick<LockWait, "waitMs" | "signal">) => Promise<Turn>;
  /** Called after each step and each removal of the command. */
  readonly progressed: () => void;
}

/** No other pass runs until it is released. */
export interface Turn {
  /** Aborts once disk pressure is due: then the waits of this pass end. */
  readonly preempt: AbortSignal;
  readonly release: () => void;
}

/** The configuration of a command for the runtime that the agent holds. Throws `ConfigError` if it names another one. */
export function onRuntimeOf(owner: Owner | null, config: Config): Config {
  if (owner === null) return config;
  const { containerRuntimeEndpoint: named } = config.values;
  if (named !== null && !isSameSocket(named, owner.endpoint)) {
    const message = `the running agent is for ${owner.endpoint}; name its --run-dir or leave the flag out`;
    throw usageError("--container-runtime-endpoint", named, message);
  }
  return { ...config, values: { ...config.values, containerRuntimeEndpoint: owner.endpoint } };
}

/** Throws `HostError`: `lock` if another process holds it, `stopped` if the signal aborted. */
export async function lockState({ values }: Config, wait: LockWait): Promise<Lock> {
  const directory = stateDirectory(values.stateDir);
  // An unwritable directory needs no lock.
  return directory === null ? { release: () => undefined } : lockOrThrow(directory, wait);
}

/** The same for the directory of the runtime's socket. */
export const lockRuntime = (endpoint: string, wait: LockWait): Promise<Lock> =>
  lockOrThrow(socketDirectory(endpoint), wait);

/** Both locks. */
export async function lockNode(config: Config, endpoint: string, wait: LockWait): Promise<Lock> {
  const state = await lockState(config, wait);
  try {
    const runtime = await lockRuntime(endpoint, wait);
    return {
      release: () => {
        runtime.release();
        state.release();
      },
    };
  } catch (thrown) {
    state.release();
    throw thrown;
  }
}

async function lockOrThrow(directory: string, wait: LockWait): Promise<Lock> {
  const attempt = await lockDirectory(directory, wait);
  switch (attempt.kind) {
    case "acquired":
      return attempt.lock;
    case "aborted":
      throw new HostError("stopped", `interrupted while waiting for the lock of ${directory}`);
    case "held":
      throw new HostError("lock", heldWords(attempt.holder));
  }
}

const heldWords = (holder: Holder): string =>
  isAgent(holder)
    ? `another agent holds ${holder.directory} (${holderWords(holder)})`
    : `${holderWords(holder)}, holds the node; try again when it has ended`;

/** The agent that holds the state directory or a runtime that the configuration may mean; `null`: none. */
export async function agentHolding({ values }: Config): Promise<Holder | null> {
  const named = values.containerRuntimeEndpoint;
  const endpoints = named === null ? knownSockets : [named];
  const directories = new Set([values.stateDir, ...endpoints.map(socketDirectory)]);
  for (const directory of directories) {
    const holder = lockHolder(directory);
    if (holder !== null && isAgent(holder)) return holder;
  }
  return null;
}

export interface Process {
  readonly pid: number;
  readonly userId: number;
  /** Command that starts this program: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
}

export interface ProcessWorld {
  readonly stderr: (text: string) => void;
  readonly self: Process;
  readonly build: { readonly version: string; readonly commit: string };
}
