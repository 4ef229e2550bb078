/**
 * What passes and loops need besides observation and execution: ledger, journal, hold. Narrow, and supplied by
 * the composition root.
 */

import type { PassId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type {
  ContainerItem,
  Event,
  HoldState,
  ImageItem,
  LogItem,
  Pass,
  PassStart,
  SandboxItem,
} from "../model/pass.ts";
import type {
  CommitFilesystem,
  HookCaller,
  LedgerMemory,
  LogRemover,
  RuntimeWriter,
  Timer,
  Verbosity,
} from "../model/ports.ts";
import type { Filesystem, RuntimeInfo } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import type { Policy } from "../policy/policy.ts";
import type { ObservePorts } from "./observe.ts";
import type { PassMemory } from "./pass-memory.ts";

/** A ledger that lasts as long as the process, for `plan` and dry runs. */
export function volatileMemory(first: Ledger): LedgerMemory {
  let ledger = first;
  return {
    current: () => ledger,
    replace: (next) => {
      ledger = next;
    },
    save: () => undefined,
  };
}

/** Records passes in history, log, metrics and hook. Nothing here throws or waits for a disk. */
export interface Journal {
  passStarted(start: PassStart): void;
  imageDone(id: PassId, item: ImageItem): void;
  containerDone(id: PassId, item: ContainerItem | SandboxItem | LogItem): void;
  passEnded(pass: Pass, seen: Seen | null): void;
  event(event: Event): void;
  /** Logs one line at a verbosity. */
  say(verbosity: Verbosity, message: string): void;
  /** Logs a failure that may repeat; identical ones of a topic become one line with a count. */
  failed(topic: string, message: string): void;
  /** Logs that `what` succeeds again, if the topic had failed. */
  succeeded(topic: string, what: string): void;
}

/** What a pass saw of the node, for status and metrics. */
export interface Seen {
  readonly runtime: RuntimeInfo;
  readonly filesystems: readonly Filesystem[];
  readonly deadContainers: number;
  /** Keep patterns that match no image. */
  readonly unmatchedKeepRules: readonly string[];
  readonly observedAt: Instant;
}

/** What observing and deciding need; nothing here can remove. */
export interface ReadEngine {
  readonly observe: ObservePorts;
  readonly memory: LedgerMemory;
  readonly timer: Timer;
  /** Kept from pass to pass. */
  readonly passes: PassMemory;
  readonly limits: () => Limits;
  readonly policy: Policy;
  readonly hold: () => HoldState;
  /** Called after each step, which on a large node leaves much garbage. */
  readonly stepDone?: () => void;
}

export interface Engine extends ReadEngine {
  readonly writer: RuntimeWriter;
  readonly remover: LogRemover;
  readonly hooks: HookCaller;
  readonly commit: CommitFilesystem;
  readonly journal: Journal;
}
