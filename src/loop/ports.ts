/** What passes and loops need beside observation and execution: memory, record, lock, hold. Narrow, and given by the composition root. */

import type { Backoff } from "../execute/backoff.ts";
import type { LogUsers } from "../execute/container/log-users.ts";
import type { HoldState } from "../model/hold.ts";
import type { PassId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { ContainerItem, ImageItem, LogItem, SandboxItem } from "../model/outcome.ts";
import type { Event, Pass, PassStart } from "../model/pass.ts";
import type { HookCaller, LedgerMemory, LogRemover, RuntimeWriter, Timer } from "../model/ports.ts";
import type { Container, Filesystem, RuntimeInfo } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import type { ObservePorts } from "../observe/observe.ts";
import type { Verbosity } from "../report/log/log.ts";

/** A memory that forgets with the process: what `compat: kubelet`, `plan` and a broken disk use. */
export function volatileMemory(first: Ledger): LedgerMemory {
  let ledger = first;
  return {
    current: () => ledger,
    replace: (next) => {
      ledger = next;
    },
  };
}

/** Where passes leave their record: history, log, metrics, hook. None of it may throw or wait for a disk. */
export interface Journal {
  passStarted(start: PassStart): void;
  imageDone(id: PassId, item: ImageItem): void;
  containerDone(id: PassId, item: ContainerItem | SandboxItem | LogItem): void;
  passEnded(pass: Pass, seen: Seen | null): void;
  event(event: Event): void;
  /** One line for the log at a verbosity. */
  say(verbosity: Verbosity, message: string): void;
  /** A failure that may repeat itself: identical ones of a topic are folded into one line with a count. */
  failed(topic: string, message: string): void;
  /** Says that `what` succeeds again if the topic had failed, else nothing. */
  succeeded(topic: string, what: string): void;
}

/** What a pass saw of the node, for status and metrics. */
export interface Seen {
  readonly runtime: RuntimeInfo;
  readonly filesystems: readonly Filesystem[];
  readonly deadContainers: number;
  readonly observedAt: Instant;
}

/** The lock that makes passes of all processes follow one another. */
export interface PassLock {
  /** Resolves with the release once the lock is ours; `null` when `waitMs` passed first. */
  acquire(waitMs: number, signal: AbortSignal): Promise<(() => void) | null>;
}

/** Containers that runtime events told of while somebody listened. */
export interface EventFeed {
  /** Containers announced since the monotonic instant. */
  announcedSince(monotonicNs: bigint): readonly Container[];
}

/** The runtime's events; they only ever add uses, and may be absent or dropped without a word. */
export interface EventSource {
  /** Listens until `signal` aborts. */
  listen(signal: AbortSignal): EventFeed;
}

/** What is needed to observe and decide: nothing here can remove. */
export interface ReadEngine {
  readonly observe: ObservePorts;
  readonly memory: LedgerMemory;
  readonly timer: Timer;
  readonly limits: () => Limits;
  readonly hold: () => HoldState;
  /** When the agent began; `null`: one pass without an agent. Under `compat: kubelet` the maximum age waits for it. */
  readonly startedAt: Instant | null;
}

/** What a pass that removes needs. */
export interface Engine extends ReadEngine {
  readonly writer: RuntimeWriter;
  readonly remover: LogRemover;
  /** Who logs where; remembered from pass to pass. */
  readonly logUsers: LogUsers;
  /** What did not answer lately; remembered from pass to pass. */
  readonly backoff: Backoff;
  /** Pre-stop requests to pods. */
  readonly hooks: HookCaller;
  readonly journal: Journal;
  readonly lock: PassLock;
  readonly events: EventSource;
}
