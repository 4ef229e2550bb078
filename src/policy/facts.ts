/** The input of every decision of a pass. */

import type { CreationId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { HoldState } from "../model/pass.ts";
import type { ImageTarget, Purpose } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Instant, ObservedTime } from "../model/time.ts";

/** How long a pass waits for containers that are being created. */
export interface CreationPatience {
  /** It has waited, and goes on whatever is being created. */
  readonly isOver: boolean;
  /**
   * Under pressure: the creations that this pass waits for. It waits for no other for which a pass has waited already.
   * `null`: not under pressure.
   */
  readonly own: ReadonlySet<CreationId> | null;
}

/** The first observation of a process that forgets, like a kubelet, what was seen of images before. */
export interface AgesFrom {
  readonly watched: ObservedTime;
  readonly at: Instant;
}

/** The halves of the node that a plan is for. `logs`: only what deleted pods left in the log directories. */
export interface Parts {
  readonly containers: "all" | "logs" | "none";
  readonly images: boolean;
}

export interface Facts {
  readonly snapshot: Snapshot;
  /** The ledger after this snapshot. */
  readonly ledger: Ledger;
  readonly limits: Limits;
  readonly purpose: Purpose;
  readonly parts: Parts;
  readonly hold: HoldState;
  /** When the agent started; `null` for a single pass without an agent. */
  readonly startedAt: Instant | null;
  /** With `compat: kubelet`; absent: images count as the ledger says. */
  readonly agesFrom?: AgesFrom | undefined;
  /** Targets that would end disk pressure; empty for a periodic pass of the agent, which relieves pressure apart. */
  readonly pressureTargets: readonly ImageTarget[];
  readonly creationPatience: CreationPatience;
}
