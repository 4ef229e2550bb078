/** What commands open: the node to read, the node to collect on, and the state directory. Main fills it with the real things. */

import type { Config } from "../config/config.ts";
import type { Meter } from "../execute/meter.ts";
import type { Engine, ReadEngine } from "../loop/ports.ts";
import type { Ledger } from "../model/ledger.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Log } from "../report/log/log.ts";
import type { StoreReader } from "../store/open.ts";
import type { Tools } from "./tools.ts";

/** A node that can be looked at; nothing here can remove, and no file of the state directory is created or changed. */
export interface OpenNode {
  readonly engine: ReadEngine;
  /** What is remembered on disk. Under `compat: kubelet` the memory of the engine has forgotten it. */
  readonly ledger: Ledger;
  /** Things to say about the state directory: a ledger that is absent, newer or unreadable. */
  readonly notices: readonly string[];
  close(): void;
}

/** A node that can be collected on. */
export interface OpenCollector {
  readonly engine: Engine;
  readonly log: Log;
  readonly notices: readonly string[];
  /** Shows the progress of a pass on a terminal. */
  readonly starting: (candidate: ImageCandidate, meter: Meter) => void;
  /** Writes what is still to be written, for a bounded time. */
  close(): Promise<void>;
}

export interface RecordedNode {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
}

export interface Openers extends Tools {
  /** Rejects with `RuntimeError` where no runtime answers, or several do and none was named. */
  node(config: Config, signal: AbortSignal): Promise<OpenNode>;
  collector(config: Config, signal: AbortSignal): Promise<OpenCollector>;
  /** The agent with everything around it; resolves with the exit code when it has ended. */
  agent(options: AgentRun): Promise<number>;
  /** The state directory, read. */
  state(config: Config): StoreReader;
  /** Reads a file that `crigc snapshot` wrote. Throws `ConfigError` where it is none: who named it has to name another. */
  recorded(path: string): Promise<RecordedNode>;
  /** What `recorded` reads. */
  snapshotText(node: RecordedNode): string;
}

export interface AgentRun {
  readonly config: Config;
  /** `connected`: whether the runtime was reached, which binds the agent to its sockets. Throws `ConfigError`. */
  readonly reload: (connected: boolean) => Config;
  readonly signal: AbortSignal;
}
