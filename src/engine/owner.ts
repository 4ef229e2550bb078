/** Who holds a node: its locks, the process, and what the agent shares with the commands that it runs. */

import type { Config } from "../config/config.ts";
import { knownSockets } from "../cri/runtimes.ts";
import type { Listener } from "../gc/journal.ts";
import type { PassMemory } from "../gc/pass-memory.ts";
import type { LedgerMemory } from "../model/ports.ts";
import { type Holder, isAgent, lockHolder, type LockWait, socketDirectory } from "../node/lock.ts";
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
  readonly recorder: Recorder;
  /** Log, history, metrics and status of the agent. */
  readonly journal: Listener;
  /** Waits until no other pass runs. Throws `HostError` `lock` after `waitMs`. */
  readonly turn: (wait: Pick<LockWait, "waitMs" | "signal">) => Promise<Turn>;
  /** Called after each step and each removal of the command. */
  readonly progressed: () => void;
}

/** No other pass runs until it is disposed of. */
export interface Turn extends Disposable {
  /** Aborts once disk pressure is due: then the waits of this pass end. */
  readonly preempt: AbortSignal;
}

/** The configuration of a command for the runtime that the agent holds, which its caller has compared. */
export const onRuntimeOf = (owner: Owner | null, config: Config): Config =>
  owner === null
    ? config
    : { ...config, values: { ...config.values, containerRuntimeEndpoint: owner.endpoint } };

/** The agent that holds the state directory or a runtime that the configuration may mean; `null`: none. */
export function agentHolding({ values }: Config): Holder | null {
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
