/** Images that came back after they were removed: the figure that tells whether thresholds are right. */

import type { Removal } from "./history.ts";
import { type Duration, type Instant, since } from "./time.ts";

/** An image that came back after it was removed, under the same ID or one of its names. */
export interface Regret extends Pick<
  Removal,
  "passId" | "subject" | "names" | "trigger" | "signal" | "reason"
> {
  readonly removedAt: Instant;
  /** When it was seen again. */
  readonly at: Instant;
  /** The ID under which it is there now. */
  readonly returnedAs: string;
  /** What the runtime reports for it: about what was pulled again. */
  readonly sizeBytes: bigint;
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
