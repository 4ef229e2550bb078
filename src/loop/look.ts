/** The look just before a removal: lists that are at most a second old, and what events told of since. */

import type { Timer } from "../execute/ports.ts";
import { RuntimeError } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type ObservePorts, refresh } from "../observe/observe.ts";
import type { EventFeed } from "./ports.ts";

/** No list older than a second is trusted for a removal; a quarter of it is left for the measurement in between. */
const LIST_AGE_NS_MAX = 750_000_000n;
/** Lists taken for one look, where what they name has to be asked about and the answers are slow. */
const ATTEMPTS = 5;
/** A pass may last for as long as its removals do: keep rules and pods that are older than this are read again. */
const RULES_AGE_NS_MAX = 60_000_000_000n;

export interface Looking {
  readonly observe: Pick<ObservePorts, "runtime" | "host">;
  readonly events: EventFeed;
  readonly timer: Timer;
  /** The snapshot that the plan was made from. */
  readonly first: Snapshot;
}

/**
 * Makes the look for one pass. Lists are taken anew for each removal, unless the last ones are younger than a second and
 * younger than the time they took: a small node is always looked at afresh, and a huge one is not listed without end.
 */
export function makeLook(looking: Looking): (signal: AbortSignal) => Promise<Snapshot> {
  const { timer, events, observe } = looking;
  let snapshot = looking.first;
  /** When the containers were listed last, and what that cost; `null`: not in this pass. */
  let listed: { readonly atNs: bigint; readonly costNs: bigint } | null = null;
  let rulesNs = timer.monotonicNs();
  /** Images that were missing from a list of this pass: one that is back is another one than was planned. */
  const missed = new Set<ImageId>();
  const list = async (signal: AbortSignal): Promise<bigint> => {
    if (timer.monotonicNs() - rulesNs > RULES_AGE_NS_MAX) {
      snapshot = { ...snapshot, ...(await rulesOf(looking, snapshot, signal)) };
      rulesNs = timer.monotonicNs();
    }
    const startNs = timer.monotonicNs();
    const sinceNs = listed?.atNs ?? startNs;
    let atNs = startNs;
    const announced = () => {
      atNs = timer.monotonicNs();
      return events.announcedSince(sinceNs);
    };
    const previous = snapshot;
    snapshot = await refresh(observe, { previous, announced }, signal);
    if (snapshot.containers.length === 0 && previous.containers.length > 0)
      throw new RuntimeError(
        "failed",
        `listing containers at ${snapshot.runtime.endpoint} named none where it named ${previous.containers.length} a moment ago; no image is removed on such a list, and the next pass looks again`,
      );
    const there = new Set(snapshot.images.map(({ id }) => id));
    for (const { id } of looking.first.images) if (!there.has(id)) missed.add(id);
    snapshot = { ...snapshot, images: snapshot.images.filter(({ id }) => !missed.has(id)) };
    listed = { atNs, costNs: atNs - startNs };
    return atNs;
  };
  return async (signal) => {
    if (listed !== null && serves(listed, timer.monotonicNs())) {
      if (events.announcedSince(listed.atNs).length === 0) return snapshot;
    }
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const atNs = await list(signal);
      // The statuses that came after the lists may have taken their time, and are known the next time.
      if (timer.monotonicNs() - atNs <= LIST_AGE_NS_MAX) return snapshot;
    }
    throw new RuntimeError(
      "deadline",
      `listing what is in use and asking about it took longer than a second ${ATTEMPTS} times at ${snapshot.runtime.endpoint}, too long for a removal that could not be within a second of it; the rest is left to the next pass`,
    );
  };
}

async function rulesOf(
  { observe: { host } }: Looking,
  { keep }: Snapshot,
  signal: AbortSignal,
): Promise<Pick<Snapshot, "keep" | "pods">> {
  const [rules, pods] = await Promise.all([
    host.keepRules(keep.directoriesRead),
    host.pods(signal),
  ]);
  return { keep: rules, pods };
}

const serves = (
  listed: { readonly atNs: bigint; readonly costNs: bigint },
  nowNs: bigint,
): boolean =>
  nowNs - listed.atNs < (listed.costNs < LIST_AGE_NS_MAX ? listed.costNs : LIST_AGE_NS_MAX);
