/** What commands can open: a node to read or to collect on, the state directory, the machine. `compose` implements it. */

import type { Config } from "../config/config.ts";
import type { Look } from "../config/source/look.ts";
import type { Meter } from "../execute/image/meter.ts";
import type { ArchivedImage } from "../host/archive/archived-images.ts";
import type { directoryFact } from "../host/disk/directory-fact.ts";
import type { walkDirectories } from "../host/disk/largest-directories.ts";
import type { TextChange } from "../host/keep/change-keep-file.ts";
import type { Kubelet } from "../host/kubelet/settings.ts";
import type { addressFault, executableFault } from "../host/process/reachable.ts";
import type { HoldRequest, writeHold } from "../host/state/hold.ts";
import type { Engine, ReadEngine } from "../loop/ports.ts";
import type { RuntimeErrorKind } from "../model/errors.ts";
import type { HoldState } from "../model/hold.ts";
import type { Ledger } from "../model/ledger.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { KeepRules } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import type { Log } from "../report/log/log.ts";
import type { StoreReader } from "../store/open.ts";
import type { RecordedNode } from "../store/snapshot-file.ts";

/** A node for reading: nothing here can remove, and no file of the state directory is created or changed. */
export interface OpenNode extends Disposable {
  readonly engine: ReadEngine;
  /** What is remembered on disk. Under `compat: kubelet` the memory of the engine has forgotten it. */
  readonly ledger: Ledger;
  /** Things to say about the state directory: a ledger that is absent, newer or unreadable. */
  readonly notices: readonly string[];
}

/** A node for collection; disposing of it writes what is still to be written, for a bounded time. */
export interface OpenCollector extends AsyncDisposable {
  readonly engine: Engine;
  readonly log: Log;
  /** Shows the progress of a pass on a terminal. */
  readonly starting: (candidate: ImageCandidate, meter: Meter) => void;
}

export interface Openers {
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
  readonly userId: number;
  /** The wall clock. */
  now(): Instant;
  hostName(): string;
  hold(config: Config): HoldPlaces;
  /** The keep rules as a pass would read them now, without any runtime. Never rejects for what is wrong in them. */
  keepRules(config: Config): Promise<KeepRules>;
  /** A file of the keep directory. */
  keepFile(config: Config, name: string): KeepFile;
  /** When `keep baseline --once` wrote its list; `null`: not yet. */
  stamp(config: Config): string | null;
  /** Throws `StoreError` where the state directory cannot keep it. */
  setStamp(config: Config, text: string): void;
  /** Throws `HostError` where the file is no archive of images. */
  archivedImages(path: string): Promise<readonly ArchivedImage[]>;
  /** Whole or not at all. Throws `HostError` of kind `write`. */
  writeFile(path: string, text: string): void;
  /** The body of an answer of the running agent. Throws `HostError` of kind `http` where none answers. */
  askAgent(config: Config, path: string, timeoutMs?: number): Promise<string>;
  machine(config: Config): Machine;
  readonly walkDirectories: typeof walkDirectories;
}

export interface AgentRun {
  readonly first: { readonly config: Config; readonly look: Look };
  /** Reads flags, environment and files again. */
  readonly look: () => Look;
  readonly signal: AbortSignal;
}

/** The state directory and the run directory: collection is held if either says so. */
export interface HoldPlaces {
  read(): HoldState;
  /** Takes the place of a hold that is there; where it lies now and when it ends. Throws `HostError` of kind `write`. */
  set(hold: Omit<HoldRequest, "by">): ReturnType<typeof writeHold>;
  /** `false`: there was none. Throws `HostError` of kind `write` where one cannot be taken away. */
  release(): boolean;
}

export interface KeepFile {
  readonly path: string;
  /** `null`: there is none. Throws `HostError` where it cannot be read. */
  read(): string | null;
  /**
   * Writes what `next` makes of its text, whole or not at all, with no other crigc between reading and writing. Throws
   * `HostError` where it cannot be read or written, and what `next` throws.
   */
  change<T>(next: (before: string | null) => TextChange<T>): T;
}

/** The facts for `doctor`, read without changing anything. */
export interface Machine {
  /** "" where it cannot be read. */
  bootId(): string;
  /** The configured socket, or every well-known one that is there, each real one once. */
  sockets(): Promise<readonly SocketFact[]>;
  readonly directory: typeof directoryFact;
  /** Of the filesystem that a path is on, or will be, as `Filesystem` has it; `null`: it cannot be told. */
  device(path: string): Promise<string | null>;
  readonly executableFault: typeof executableFault;
  readonly addressFault: typeof addressFault;
  kubelet(): KubeletFact;
}

export interface KubeletFact extends Pick<Kubelet, "settings" | "problems"> {
  /** Paths that say that a kubelet belongs to this node. */
  readonly signs: readonly string[];
  /** Its processes. */
  readonly running: readonly number[];
}

export interface SocketFact {
  readonly endpoint: string;
  readonly answer:
    | { readonly kind: "runtime"; readonly name: string; readonly version: string }
    | { readonly kind: "error"; readonly error: RuntimeErrorKind; readonly message: string };
}
