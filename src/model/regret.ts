/** Images that came back after they were removed: the figure that tells whether thresholds are right. */

import type { PassId } from "./ids.ts";
import type { Signal } from "./limits.ts";
import type { Purpose } from "./plan.ts";
import type { ImageTrigger } from "./reason.ts";
import { type Duration, type Instant, since } from "./time.ts";

/** An image that came back after it was removed, under the same ID or one of its names. */
export interface Regret {
  /** Of the removal. */
  readonly passId: PassId;
  /** The removed image's ID. */
  readonly subject: string;
  readonly names: readonly string[];
  readonly removedAt: Instant;
  /** When it was seen again. */
  readonly at: Instant;
  /** The ID under which it is there now. */
  readonly returnedAs: string;
  /** What the runtime reports for it: about what was pulled again. */
  readonly sizeBytes: bigint;
  /** Why it was removed. */
  readonly trigger: ImageTrigger["kind"] | Purpose["kind"];
  readonly signal: Signal | null;
  readonly reason: string;
}

/** As far as the history goes. */
export interface RegretFigures {
  readonly removedImages: number;
  /** By the trigger of the removal. */
  readonly returned: readonly {
    readonly trigger: string;
    readonly count: number;
    readonly sizeBytes: bigint;
  }[];
  /** The shortest time between removal and return; `null`: none came back. */
  readonly soonest: Duration | null;
}

export function regretFigures(removedImages: number, regrets: readonly Regret[]): RegretFigures {
  const triggers = [...new Set(regrets.map(({ trigger }) => trigger))].toSorted();
  const times = regrets.map(({ at, removedAt }) => since(at, removedAt));
  return {
    removedImages,
    returned: triggers.map((trigger) => {
      const of = regrets.filter((one) => one.trigger === trigger);
      const sizeBytes = of.reduce((sum, one) => sum + one.sizeBytes, 0n);
      return { trigger, count: of.length, sizeBytes };
    }),
    soonest: times.reduce<Duration | null>(
      (least, time) => (least === null || time < least ? time : least),
      null,
    ),
  };
}
