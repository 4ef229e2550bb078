/** Leases: keep rules that end, in observed time from the first observation that read their line. */
import type { Lease, LeaseRecord } from "../../model/lease.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { Image, KeepRule, Snapshot } from "../../model/snapshot.ts";
import {
  type Duration,
  duration,
  type Instant,
  type ObservedTime,
  watchedSince,
} from "../../model/time.ts";
import { atLeastZero } from "../../model/values.ts";
import { sameOr } from "../by-object.ts";
import type { Usage } from "../image/usage.ts";
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

/**
 * The leases after an observation: new lines start, and those that are gone are forgotten, unless a keep file cannot be
 * read.
 */
export function rememberLeases(
  ledger: Ledger,
  { snapshot, usage }: { readonly snapshot: Snapshot; readonly usage: Usage },
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
    const images = imagesOfNewContainers(ledger.containers, snapshot, usage);
    for (const [rule, those] of keepRuleMatches(compileKeepRules([...used.keys()]), images))
      if (those.length > 0) used.get(rule)?.();
  }
  return sameOr(ledger.leases, next);
}

/**
 * Images of containers that no earlier observation has seen. The name of a container may have moved to another image since
 * its creation, so only its ID counts if it is listed.
 */
function imagesOfNewContainers(
  known: Ledger["containers"],
  { images, containers }: Snapshot,
  { users }: Usage,
): readonly Image[] {
  const listed = new Set<string>(images.map(({ id }) => id));
  const ownImage = new Map(
    containers
      .filter(({ id }) => !known.has(id))
      .map((it) => [it.id, [it.imageId, it.imageRef].find((own) => listed.has(own))]),
  );
  return images.filter(({ id }) =>
    users.get(id)?.some((user) => {
      if (user.kind === "image-volume") return ownImage.has(user.id);
      return (
        user.kind === "container" && ownImage.has(user.id) && (ownImage.get(user.id) ?? id) === id
      );
    }),
  );
}
