/** What the walk over an image plan is given, and what it returns. */

import type { ReleaseRecord } from "../model/ledger.ts";
import type { ImageLimits } from "../model/limits.ts";
import type { ImageItem, ImageOutcome } from "../model/outcome.ts";
import type { ImageCandidate, ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { RuntimeInfo, Snapshot } from "../model/snapshot.ts";
import type { Duration, Instant } from "../model/time.ts";
import type { DiskReader, RuntimeReader } from "../observe/ports.ts";
import type { Meter, Place } from "./meter.ts";
import type { RuntimeWriter, Timer } from "./ports.ts";

/** What the walk asks of the rest of the program. */
export interface ImageExecution {
  readonly plan: ImagePlan;
  readonly limits: ImageLimits;
  /** The filesystem that holds the images, with what the runtime says they take there; `null` where it is not known. */
  readonly store: (Place & { readonly usedBytes: bigint | null }) | null;
  /** Whether images lie on more filesystems than one, so that a removal may gain nothing where it is full. */
  readonly severalStores: boolean;
  /** How long this pass has waited for starting pods already. */
  readonly waitedForPods: Duration;
  /** Images listed when the plan was made, each once. */
  readonly imageCount: number;
  readonly runtimeInfo: Pick<RuntimeInfo, "name" | "version">;
  /** What was learned of how it frees space. */
  readonly release: ReleaseRecord;
  readonly runtime: Pick<RuntimeReader, "listImages">;
  readonly writer: Pick<RuntimeWriter, "removeImage">;
  readonly disk: Pick<DiskReader, "measure">;
  readonly timer: Timer;
  readonly now: () => Instant;
  /** The node as listed just now (at most a second ago); rejects where a list fails. */
  readonly look: (signal: AbortSignal) => Promise<Snapshot>;
  /** Why the candidate may not go after all, by the fresh facts; `null`: it may. `waited`: for starting pods, in this pass in all. */
  readonly reconsider: (
    candidate: ImageCandidate,
    fresh: Snapshot,
    waited: Duration,
  ) => ImageKeepReason | null;
  /** Whether what is left can still bring relief, after so much was gained. */
  readonly stillUseful: (rest: readonly ImageCandidate[], meter: Meter) => boolean;
  /** Told of each item as soon as it is done. */
  readonly done: (item: ImageItem) => void;
  /** Told before each removal. */
  readonly starting?: (candidate: ImageCandidate, meter: Meter) => void;
}

export interface ImageExecuted {
  readonly outcome: ImageOutcome;
  readonly release: ReleaseRecord;
}
