/** The look just before a removal: fresh lists, and patience with pods that are only just starting. */
import { durationFromMs, toMs, type Instant } from "../model/time.ts";
import type { Container, Snapshot } from "../model/snapshot.ts";
import type { Timer } from "../execute/ports.ts";
import { refresh } from "../observe/observe.ts";
import type { ObservePorts } from "../observe/observe.ts";
import type { EventFeed } from "./ports.ts";
import { STARTING_WAIT, startingSandboxes } from "./starting-sandboxes.ts";

/** A list older than this is never trusted for a removal. */
const LIST_AGE_MS_MAX = 1_000;
const PAUSE_MS = 500;

export interface Looking {
  readonly observe: Pick<ObservePorts, "runtime" | "host">;
  readonly events: EventFeed | null;
  readonly timer: Timer;
  /** The snapshot that the plan was made from. */
  readonly first: Snapshot;
  /** Told once when a wait begins. */
  readonly waiting?: (sandboxes: readonly Snapshot["sandboxes"][number][]) => void;
}

/**
 * Makes the look for one pass. Lists are taken anew for each removal, unless the last ones are younger than a second and
 * younger than they took to make: so a small node is always looked at afresh, and a huge one is not listed without end.
 */
export function makeLook(looking: Looking): (signal: AbortSignal) => Promise<Snapshot> {
  const { timer } = looking;
  let snapshot = looking.first;
  let listedNs: bigint | null = null;
  let costNs = 0n;
  let waitedMs = 0;
  const list = async (signal: AbortSignal): Promise<void> => {
    const startNs = timer.monotonicNs();
    const announced = announcedSince(looking, listedNs ?? startNs);
    snapshot = await refresh(looking.observe, { previous: snapshot, announced }, signal);
    listedNs = startNs;
    costNs = timer.monotonicNs() - startNs;
  };
  return async (signal) => {
    const heard = listedNs !== null && announcedSince(looking, listedNs).length > 0;
    if (heard || !isFresh(listedNs, costNs, timer.monotonicNs())) await list(signal);
    for (;;) {
      const starting = startingSandboxes(snapshot, wallNow(looking));
      if (starting.length === 0 || waitedMs >= toMs(STARTING_WAIT) || signal.aborted) break;
      if (waitedMs === 0) looking.waiting?.(starting);
      const pauseNs = timer.monotonicNs();
      await timer.sleep(PAUSE_MS, signal);
      waitedMs += Math.max(1, Number((timer.monotonicNs() - pauseNs) / 1_000_000n));
      await list(signal);
    }
    return snapshot;
  };
}

function isFresh(listedNs: bigint | null, costNs: bigint, nowNs: bigint): boolean {
  if (listedNs === null) return false;
  const age = nowNs - listedNs;
  const longest = durationFromMs(LIST_AGE_MS_MAX);
  return age < (costNs * 2n < longest ? costNs * 2n : longest);
}

const wallNow = (looking: Looking): Instant => looking.observe.host.clocks().wall;

/** What events told of: it may be in no list yet, so it is listed again and added where the list still lacks it. */
const announcedSince = (looking: Looking, sinceNs: bigint): readonly Container[] =>
  looking.events?.announcedSince(sinceNs) ?? [];
