/** The node's lists just before a removal: at most a second old, plus what events announced since. */

import { RuntimeError } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { Timer } from "../model/ports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { FreshLists } from "./image/image-execution.ts";
import { type ObservePorts, refresh } from "./observe.ts";
import type { EventFeed } from "./ports.ts";

/** No list older than a second is trusted for a removal; a quarter of it is left for the measurement in between. */
const LIST_AGE_NS_MAX = 750_000_000n;
/** Mounts are read once, so a second look is quick if only that took long. */
const ATTEMPTS = 2;
/** A pass lasts as long as its removals; pods older than this are read again. */
const PODS_AGE_NS_MAX = 60_000_000_000n;

export interface Looking {
  readonly observe: Pick<ObservePorts, "runtime" | "host">;
  readonly events: EventFeed;
  readonly timer: Timer;
  /** The snapshot that the plan is based on. */
  readonly first: Snapshot;
  /** Receives messages of the pass about its lists. */
  readonly say: (message: string) => void;
}

interface Listed {
  readonly lists: FreshLists;
  /** Before the first list was requested. */
  readonly startNs: bigint;
  /** When the containers were listed: later events are not in the lists. */
  readonly containersNs: bigint;
  /** How long the lists are valid, from `startNs`. */
  readonly ageNsMax: bigint;
}

/** Lists for one pass: the whole node once a second, and at once when an event announces another container. */
export function freshLists(
  looking: Looking,
): (signal: AbortSignal, sinceNs?: bigint) => Promise<FreshLists> {
  const { timer, events } = looking;
  const lists = new Lists(looking);
  let listed: Listed | null = null;
  let isSlow = false;
  const isValid = ({ startNs, ageNsMax, containersNs }: Listed, sinceNs: bigint): boolean =>
    startNs >= sinceNs &&
    timer.monotonicNs() - startNs <= ageNsMax &&
    events.announcedSince(containersNs).length === 0;
  return async (signal, sinceNs = 0n) => {
    if (listed !== null && isValid(listed, sinceNs)) return listed.lists;
    for (let attempt = isSlow ? ATTEMPTS : 1; ; attempt += 1) {
      const next = await lists.read(signal);
      const tookNs = timer.monotonicNs() - next.startNs;
      listed = { ...next, ageNsMax: LIST_AGE_NS_MAX };
      if (tookNs <= LIST_AGE_NS_MAX) return listed.lists;
      if (attempt < ATTEMPTS) continue;
      if (!isSlow) looking.say(slowWords(tookNs));
      isSlow = true;
      listed = { ...next, ageNsMax: tookNs + LIST_AGE_NS_MAX };
      return listed.lists;
    }
  };
}

const slowWords = (tookNs: bigint): string =>
  `Listing the node takes ${(Number(tookNs) / 1e9).toFixed(1)} s, so removals in this pass rely on lists up to a second older than that; crigc sees a container that starts meanwhile only in the next list`;

class Lists {
  readonly #looking: Looking;
  #snapshot: Snapshot;
  #containersNs: bigint | null = null;
  #podsNs: bigint;
  /** Images that were missing from a list of this pass: one that is back is not the one that was planned. */
  #missed: ReadonlySet<ImageId> = new Set();

  constructor(looking: Looking) {
    this.#looking = looking;
    this.#snapshot = looking.first;
    this.#podsNs = looking.timer.monotonicNs();
  }

  async read(signal: AbortSignal): Promise<Omit<Listed, "ageNsMax">> {
    const { timer, events, observe } = this.#looking;
    const startNs = timer.monotonicNs();
    const sinceNs = this.#containersNs ?? startNs;
    let containersNs = startNs;
    const announced = () => {
      containersNs = timer.monotonicNs();
      return events.announcedSince(sinceNs);
    };
    const previous = await this.#withRules(signal);
    const snapshot = await refresh(observe, { previous, announced }, signal);
    if (snapshot.containers.length === 0 && previous.containers.length > 0)
      throw new RuntimeError("failed", vanishedWords(previous));
    if (snapshot.pods !== previous.pods) this.#podsNs = timer.monotonicNs();
    this.#snapshot = snapshot;
    this.#containersNs = containersNs;
    this.#noteMissing(snapshot);
    return { lists: { snapshot, missed: this.#missed }, startNs, containersNs };
  }

  async #withRules(signal: AbortSignal): Promise<Snapshot> {
    const { timer, observe } = this.#looking;
    const keep = await observe.host.keepRules(this.#snapshot.keep.directoriesRead);
    if (timer.monotonicNs() - this.#podsNs <= PODS_AGE_NS_MAX) return { ...this.#snapshot, keep };
    const pods = await observe.host.pods(signal);
    this.#podsNs = timer.monotonicNs();
    return { ...this.#snapshot, keep, pods };
  }

  #noteMissing({ images }: Snapshot): void {
    const listed = new Set(images.map(({ id }) => id));
    const missing = this.#looking.first.images.filter(({ id }) => !listed.has(id));
    this.#missed = new Set([...this.#missed, ...missing.map(({ id }) => id)]);
  }
}

const vanishedWords = ({ containers, runtime }: Snapshot): string =>
  `the runtime at ${runtime.endpoint} lists no container, but listed ${containers.length} a moment ago; crigc removes no image on such a list, and the next pass tries again`;
