/** When a lease ends and when it began, for `keep list` and `explain`. */

import type { Lease } from "../model/lease.ts";
import { type Duration, type Instant, toMs } from "../model/time.ts";
import { humanDuration, secondOf } from "./bytes.ts";
import { type JsonObject, timeOf } from "./document.ts";

export interface LeaseTimes {
  readonly since?: Instant | undefined;
  /** Observed time until it ends; 0 once it has ended. */
  readonly remaining?: Duration | undefined;
  readonly untilUsed?: boolean | undefined;
  /** When a use ended it. */
  readonly usedAt?: Instant | null;
}

export const leaseJson = ({ untilUsed, lasts }: Lease, times: LeaseTimes | null): JsonObject => ({
  untilUsed,
  lastsMs: toMs(lasts),
  startedAt: timeOf(times?.since ?? null),
  usedAt: timeOf(times?.usedAt ?? null),
  remainingMs: times?.remaining === undefined ? null : toMs(times.remaining),
});

export function leaseWords({ since, remaining, untilUsed, usedAt }: LeaseTimes): string {
  const started = since === undefined ? "" : `, since ${secondOf(since)}`;
  if (usedAt != null) return `lease ended with its first use at ${secondOf(usedAt)}${started}`;
  if (remaining === undefined || remaining === 0n) return `lease ended${started}`;
  const orUsed = untilUsed === true ? " or with its first use" : "";
  return `lease ends in ${humanDuration(remaining)}${orUsed}${started}`;
}
