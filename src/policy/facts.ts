/** The input of every decision of a pass. */

import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { HoldState } from "../model/pass.ts";
import type { ImageTarget, Purpose } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Duration } from "../model/time.ts";

/** What the plan covers. `logs`: only what deleted pods left in the log directories. */
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
  /** Targets that would end disk pressure; empty for a periodic pass of the agent, which relieves pressure apart. */
  readonly pressureTargets: readonly ImageTarget[];
  /** Images that could not be removed within the last day. */
  readonly last: ReadonlySet<string>;
  /** Devices where removals gave nothing back, and how long no image is removed there. */
  readonly paused: ReadonlyMap<string, Duration>;
}
