/** What passes and loops need besides observation and execution. Narrow, and supplied by the composition root. */

import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { HoldState } from "../model/pass.ts";
import type {
  CommitFilesystem,
  HookCaller,
  LedgerMemory,
  LogRemover,
  RuntimeWriter,
  Timer,
} from "../model/ports.ts";
import type { Policy } from "../policy/policy.ts";
import type { Journal } from "./journal.ts";
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
