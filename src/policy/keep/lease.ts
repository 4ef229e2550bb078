/** Leases: keep rules that end, in observed time from the first observation that read their line. */
import type { ImageId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { Lease, LeaseRecord } from "../../model/records.ts";
import type { KeepRule, Snapshot } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  type Instant,
  type ObservedTime,
  watchedSince,
} from "../../model/time.ts";
import { atLeastZero } from "../../model/values.ts";
import { sameOr } from "../by-object.ts";
import { compileKeepRules, keepRuleMatches } from "./keep.ts";

/** A line that has moved within its file is the same lease; one with other words is another. */
const keyOf = ({ pattern, source }: KeepRule, { text }: Lease): string =>
  `${source.replace(/:\d+$/, "")} ${pattern} ${text}`;

export interface LeaseState extends Pick<LeaseRecord, "startedAt" | "usedAt"> {
  /** Observed time until it ends; 0 once it has ended. */
  readonly remaining: Duration;
}

/** `null`: no lease, or none that an observation has read. */
export function leaseState(rule: KeepRule, { leases, watched }: LeaseFacts): LeaseState | null {
  const { lease } = rule;
  const record = lease === undefined ? undefined : leases.get(keyOf(rule, lease));
  if (lease === undefined || record === undefined) return null;
  const { startedAt, usedAt, startedWatched } = record;
  const left = lease.lasts - watchedSince(watched, startedWatched);
  return { startedAt, usedAt, remaining: duration(usedAt === null ? atLeastZero(left) : 0n) };
}

/** The state of a lease that no observation has read. */
export const newLease = ({ lasts }: Lease, startedAt: Instant): LeaseState => ({
  startedAt,
  usedAt: null,
  remaining: lasts,
});

type LeaseFacts = Pick<Ledger, "leases" | "watched">;

/** Without the leases that have ended. */
export const rulesInForce = (
  rules: readonly KeepRule[],
  ledger: LeaseFacts,
): readonly KeepRule[] =>
  rules.some(({ lease }) => lease !== undefined)
    ? rules.filter((rule) => leaseState(rule, ledger)?.remaining !== 0n)
    : rules;

interface NewContainers {
  readonly snapshot: Snapshot;
  /** Images of containers that no earlier observation has seen. */
  readonly newContainers: ReadonlyMap<ImageId, number>;
}

/**
 * The leases after an observation: new lines start, and those that are gone are forgotten, unless a keep file cannot be
 * read.
 */
export function rememberLeases(
  ledger: Ledger,
  { snapshot, newContainers }: NewContainers,
  now: ObservedTime,
): Ledger["leases"] {
  const { keep, clocks, observedAt } = snapshot;
  const next = new Map(keep.problems.length > 0 ? ledger.leases : []);
  /** Leases that a use ends. */
  const used = new Map<KeepRule, () => void>();
  for (const rule of keep.rules) {
    if (rule.lease === undefined) continue;
    const key = keyOf(rule, rule.lease);
    const before = ledger.leases.get(key);
    next.set(key, before ?? { startedAt: clocks.wall, startedWatched: now, usedAt: null });
    if (rule.lease.untilUsed && before?.usedAt === null)
      used.set(rule, () => void next.set(key, { ...before, usedAt: observedAt }));
  }
  if (used.size > 0) {
    const images = snapshot.images.filter(({ id }) => newContainers.has(id));
    for (const [rule, those] of keepRuleMatches(compileKeepRules([...used.keys()]), images))
      if (those.length > 0) used.get(rule)?.();
  }
  return sameOr(ledger.leases, next);
}
