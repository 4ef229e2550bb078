/** What commands can open: a node to read or collect on, the state directory, the machine. `agent/openers.ts` implements it. */

import type { Log } from "../agent/log.ts";
import type { Config, Written } from "../config/config.ts";
import type { Meter } from "../gc/meter.ts";
import type { Engine, ReadEngine } from "../gc/ports.ts";
import type { Ledger } from "../model/ledger.ts";
import type { HoldState } from "../model/pass.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { KeepRules } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import type { ArchivedImage } from "../node/archive.ts";
import type { directoryFact, filesIn, walkDirectories } from "../node/directories.ts";
import type { executableFault } from "../node/executable.ts";
import type { HoldRequest, writeHold } from "../node/hold.ts";
import type { addressFault } from "../node/http.ts";
import type { TextChange } from "../node/keep-files.ts";
import type { Kubelet } from "../node/kubelet/settings.ts";
import type { StoreReader } from "../store/open.ts";
import type { RecordedNode } from "../store/snapshot-file.ts";

/** A node for reading: cannot remove anything, and creates or changes no file of the state directory. */
export interface OpenNode extends Disposable {
  readonly engine: ReadEngine;
  /** The ledger on disk; with `compat: kubelet` the engine has its own. */
  readonly ledger: Ledger;
  /** Warnings about the state directory: the ledger is broken, of another version or unreadable. */
  readonly notices: readonly string[];
}

/** A node for collection; disposing of it writes what is still to be written, for a bounded time. */
export interface OpenCollector extends AsyncDisposable {
  readonly engine: Engine;
  readonly log: Log;
  /** Shows the progress of a pass on a terminal. */
  readonly starting: (candidate: ImageCandidate, meter: Meter) => void;
  /** Waits until the pass is recorded, or `patience` aborts; returns the number of removals that are not. */
  readonly recorded: (patience: AbortSignal) => Promise<number>;
}

export interface Openers {
  /** Rejects with `RuntimeError` if no runtime answers, or several do and none is configured. */
  node(config: Config, signal: AbortSignal): Promise<OpenNode>;
  collector(config: Config, signal: AbortSignal): Promise<OpenCollector>;
  /** Runs the agent; resolves with the exit code. */
  agent(options: AgentRun): Promise<number>;
  /** The state directory, read. */
  state(config: Config): StoreReader;
  /** Reads a file that `crigc snapshot` wrote. Throws `ConfigError` for any other file. */
  recorded(path: string): Promise<RecordedNode>;
  /** What `recorded` reads. */
  snapshotText(node: RecordedNode): string;
  readonly userId: number;
  now(): Instant;
  hostName(): string;
  hold(config: Config): HoldPlaces;
  /** The keep rules as a pass would read them now, without a runtime. Does not reject for invalid rules. */
  keepRules(config: Config): Promise<KeepRules>;
  keepFile(config: Config, name: string): KeepFile;
  /** The stamp of `keep baseline --once`; `null`: none yet. */
  stamp(config: Config): string | null;
  /** Throws `StoreError` if the state directory cannot be written. */
  setStamp(config: Config, text: string): void;
  /** Throws `HostError` if the file is not an image archive. */
  archivedImages(path: string): Promise<readonly ArchivedImage[]>;
  readonly filesIn: typeof filesIn;
  /** Atomic. Throws `HostError` `write`. */
  writeFile(path: string, text: string): void;
  /** The body of the agent's response. Throws `HostError` `http` if no agent answers. */
  askAgent(config: Config, path: string, timeoutMs?: number): Promise<string>;
  /** Tells whether another process has the same root directory. */
  rootDirectoryId(): string;
  machine(config: Config): Machine;
  readonly walkDirectories: typeof walkDirectories;
}

export interface AgentRun {
  readonly first: Written;
  /** Reads flags, environment and files again. Throws `ConfigError`. */
  readonly read: () => Written;
  readonly signal: AbortSignal;
}

/** The hold in the state directory or the run directory; either is in force. */
export interface HoldPlaces {
  read(): HoldState;
  /** Replaces any hold; returns its file and its end. Throws `HostError` `write`. */
  set(hold: Omit<HoldRequest, "by">): ReturnType<typeof writeHold>;
  /** `false`: there was none. Throws `HostError` `write` if one cannot be removed. */
  release(): boolean;
}

export interface KeepFile {
  readonly path: string;
  /** `null`: does not exist. Throws `HostError` if it cannot be read. */
  read(): string | null;
  /**
   * Atomically writes what `next` makes of its text, under a lock against other crigc commands. Throws
   * `HostError` if it cannot be read or written, and what `next` throws.
   */
  change<T>(next: (before: string | null) => TextChange<T>): T;
}

/** The facts for `doctor`, read without changing anything. */
export interface Machine {
  /** "" if unreadable. */
  bootId(): string;
  /** The configured socket, and every well-known one that exists, without duplicates by link. */
  sockets(): Promise<readonly SocketFact[]>;
  readonly directory: typeof directoryFact;
  /** The device of the filesystem that a path is or would be on, as in `Filesystem`; `null`: unknown. */
  device(path: string): Promise<string | null>;
  readonly executableFault: typeof executableFault;
  readonly addressFault: typeof addressFault;
  kubelet(): KubeletFact;
}

export interface KubeletFact extends Pick<Kubelet, "settings" | "problems"> {
  /** Paths that suggest a kubelet on this node. */
  readonly signs: readonly string[];
  readonly running: readonly number[];
}

export interface SocketFact {
  readonly endpoint: string;
  readonly answer:
    | { readonly kind: "runtime"; readonly name: string; readonly version: string }
    | { readonly kind: "error"; readonly message: string };
}
