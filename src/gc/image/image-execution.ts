/** The input and the result of executing an image plan. */

import type { ImageId } from "../../model/ids.ts";
import type { ImageItem, ImageOutcome } from "../../model/outcome.ts";
import type { HoldState, WaitName } from "../../model/pass.ts";
import type { ImageCandidate, ImagePlan } from "../../model/plan.ts";
import type {
  CommitFilesystem,
  DiskReader,
  LedgerMemory,
  RuntimeReader,
  RuntimeWriter,
  Timer,
} from "../../model/ports.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import type { Facts } from "../../policy/facts.ts";
import type { FreedHere } from "../../policy/space/nothing-freed.ts";
import type { Meter } from "./meter.ts";

/** The node as listed within the last second. */
export interface FreshLists {
  /** The plan's snapshot with new lists; the same object while they are valid. */
  readonly snapshot: Snapshot;
  /** Images of the plan's snapshot that were missing from a list of this pass. */
  readonly missed: ReadonlySet<ImageId>;
}

/** What a pass does while containers are being created. */
export interface AwaitsCreations {
  /** The block by these lists; `null`: no container is being created for which the pass may wait. */
  block(lists: FreshLists): ImageBlock | null;
  /** Resolves with lists without such a container, or with a block once the pass may no longer wait. */
  settled(first: FreshLists, next: () => Promise<FreshLists>): Promise<SettledCreations>;
}

export interface SettledCreations {
  readonly fresh: FreshLists;
  readonly block: ImageBlock | null;
}

export interface ImageExecution {
  readonly plan: ImagePlan;
  /** What the plan was decided from. */
  readonly facts: Facts;
  readonly runtime: Pick<RuntimeReader, "imageStatus">;
  readonly writer: Pick<RuntimeWriter, "removeImage">;
  readonly disk: Pick<DiskReader, "measure">;
  readonly commit: CommitFilesystem;
  readonly timer: Timer;
  readonly now: () => Instant;
  /** The current ledger, including what another process or loop recorded since the plan was made. */
  readonly memory: LedgerMemory;
  /** A new hold also stops the running pass. */
  readonly hold: () => HoldState;
  /** The pass's wait for containers that are being created. */
  readonly creations: AwaitsCreations;
  /** Rejects if a list fails. `sinceNs`: lists requested before are too old, by the monotonic clock. */
  readonly lists: (signal: AbortSignal, sinceNs?: bigint) => Promise<FreshLists>;
  /** Times a wait as a step of the pass. */
  readonly waiting: <T>(name: WaitName, wait: () => Promise<T>) => Promise<T>;
  /** Called with each item as soon as it is done. */
  readonly done: (item: ImageItem) => void;
  readonly starting?: ((candidate: ImageCandidate, meter: Meter) => void) | undefined;
}

export interface ImageExecuted {
  readonly outcome: ImageOutcome;
  readonly freed: readonly FreedHere[];
}
