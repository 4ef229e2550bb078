/** The look just before a removal: lists that are at most a second old, and what events told of since. */

import type { Timer } from "../execute/ports.ts";
import type { Container, Snapshot } from "../model/snapshot.ts";
import { type ObservePorts, refresh } from "../observe/observe.ts";
import type { EventFeed } from "./ports.ts";

/** A list older than this is never trusted for a removal. */
const LIST_AGE_NS_MAX = 1_000_000_000n;

export interface Looking {
  readonly observe: Pick<ObservePorts, "runtime" | "host">;
  readonly events: EventFeed;
  readonly timer: Timer;
  /** The snapshot that the plan was made from. */
  readonly first: Snapshot;
}

/**
 * Makes the look for one pass. Lists are taken anew for each removal, unless the last ones are younger than a second and
 * younger than twice the time they took: a small node is always looked at afresh, and a huge one is not listed without end.
 */
export function makeLook(looking: Looking): (signal: AbortSignal) => Promise<Snapshot> {
  const { timer } = looking;
  let snapshot = looking.first;
  let listedNs: bigint | null = null;
  let costNs = 0n;
  return async (signal) => {
    const heard = listedNs !== null && announcedSince(looking, listedNs).length > 0;
    if (!heard && isFresh(listedNs, costNs, timer.monotonicNs())) return snapshot;
    const startNs = timer.monotonicNs();
    const announced = announcedSince(looking, listedNs ?? startNs);
    snapshot = await refresh(looking.observe, { previous: snapshot, announced }, signal);
    listedNs = startNs;
    costNs = timer.monotonicNs() - startNs;
    return snapshot;
  };
}

/** The age counts from before the lists were asked for: what they say may be that old. */
function isFresh(listedNs: bigint | null, costNs: bigint, nowNs: bigint): boolean {
  if (listedNs === null) return false;
  const longest = costNs * 2n < LIST_AGE_NS_MAX ? costNs * 2n : LIST_AGE_NS_MAX;
  return nowNs - listedNs < longest;
}

/** What events told of: it may be in no list yet, so it is listed again and added where the list still lacks it. */
const announcedSince = (looking: Looking, sinceNs: bigint): readonly Container[] =>
  looking.events.announcedSince(sinceNs);
