/** The input of every decision of a pass. */
import type { HoldState } from "../model/hold.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Limits } from "../model/limits.ts";
import type { ImageTarget, Purpose } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Duration, Instant } from "../model/time.ts";

export interface Facts {
  readonly snapshot: Snapshot;
  /** As remembered after this snapshot. */
  readonly ledger: Ledger;
  readonly limits: Limits;
  readonly purpose: Purpose;
  readonly hold: HoldState;
  /** When the agent started; `null`: one pass without an agent. */
  readonly startedAt: Instant | null;
  /** Of a pass under pressure: what would end it. Empty otherwise. */
  readonly pressureTargets: readonly ImageTarget[];
  /** Devices on which removals lately gained nothing; none are known without an agent. */
  readonly noGainDevices?: ReadonlySet<string>;
  /** How long the pass has waited for starting pods already. */
  readonly waitedForPods: Duration;
}
