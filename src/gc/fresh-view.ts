/** The one look at the node before a removal: lists at most a second old, and each candidate judged again on them. */

import { RuntimeError } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { HoldState } from "../model/pass.ts";
import type { ImageCandidate } from "../model/plan.ts";
import type { LedgerMemory, Timer } from "../model/ports.ts";
import type { ImageBlock, ImageKeepReason } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Facts } from "../policy/facts.ts";
import { changed, type Recheck, recheckImages } from "../policy/image/judge.ts";
import type { CreationWait } from "./creation-wait.ts";
import type { Observer } from "./observe.ts";
import type { Engine } from "./ports.ts";
import type { Steps } from "./steps.ts";

/** Nothing older than a second is trusted for a removal; a quarter of it is left for the measurement in between. */
const AGE_NS_MAX = 750_000_000n;

interface Read<T> {
  readonly value: T;
  /** Before the lists were requested, by the monotonic clock. */
  readonly startNs: bigint;
  /** How long the lists themselves took. */
  readonly listsNs: bigint;
}

interface FreshOptions<T> {
  readonly timer: Pick<Timer, "monotonicNs">;
  readonly read: (signal: AbortSignal) => Promise<Read<T>>;
  /** Receives a message if lists take longer than they are trusted. */
  readonly say: (message: string) => void;
  readonly first?: Omit<Read<T>, "listsNs">;
}

/** A value read from the node, and read again once it is too old for a removal. */
export class Fresh<T> {
  readonly #options: FreshOptions<T>;
  #last: (Omit<Read<T>, "listsNs"> & { readonly ageNsMax: bigint }) | null;
  #isSlow = false;
  #isExpired = false;
  /** Removals that find the lists too old share one read. */
  #reading: Promise<T> | null = null;

  constructor(options: FreshOptions<T>) {
    this.#options = options;
    this.#last = options.first === undefined ? null : { ...options.first, ageNsMax: AGE_NS_MAX };
  }

  /** As last read. */
  get value(): T {
    if (this.#last === null) throw new Error("what was never read has no value");
    return this.#last.value;
  }

  /** Something contradicts the value: the next `get` reads again. */
  expire(): void {
    this.#isExpired = true;
  }

  async get(signal: AbortSignal): Promise<T> {
    if (this.#isExpired) return this.again(signal);
    if (this.#reading === null && this.#last !== null && this.#isValid(this.#last))
      return this.#last.value;
    return this.#shared(signal);
  }

  /** Reads however old the value is, and what is being read now may have been read too early. */
  async again(signal: AbortSignal): Promise<T> {
    this.#isExpired = false;
    await this.#reading?.catch(() => null);
    return this.#shared(signal);
  }

  async #shared(signal: AbortSignal): Promise<T> {
    this.#reading ??= this.#read(signal).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  #isValid({ startNs, ageNsMax }: { readonly startNs: bigint; readonly ageNsMax: bigint }) {
    return this.#options.timer.monotonicNs() - startNs <= ageNsMax;
  }

  async #read(signal: AbortSignal): Promise<T> {
    const { timer, read, say } = this.#options;
    for (let mayRepeat = !this.#isSlow; ; mayRepeat = false) {
      const next = await read(signal);
      const tookNs = timer.monotonicNs() - next.startNs;
      const isQuick = tookNs <= AGE_NS_MAX;
      // Statuses are read once, so a second look is quick if only they took long.
      if (!isQuick && mayRepeat && next.listsNs <= AGE_NS_MAX) continue;
      if (!isQuick && !this.#isSlow) say(slowWords(tookNs));
      this.#isSlow ||= !isQuick;
      this.#last = { ...next, ageNsMax: AGE_NS_MAX + (isQuick ? 0n : tookNs) };
      return next.value;
    }
  }
}

const slowWords = (tookNs: bigint): string =>
  `Listing the node takes ${(Number(tookNs) / 1e9).toFixed(1)} s, so removals in this pass rely on lists up to a second older than that; crigc sees a container that starts meanwhile only in the next list`;

/** The node as listed within the last second. */
export interface FreshNode {
  /** The plan's snapshot with new lists; the same object while they are valid. */
  readonly snapshot: Snapshot;
  /** Images of the plan's snapshot that were missing from a list of this pass. */
  readonly missed: ReadonlySet<ImageId>;
  /** By these lists: containers that are being created, for which the pass may wait no longer. */
  readonly block: ImageBlock | null;
}

export interface FreshNodeInput {
  readonly engine: Pick<Engine, "timer" | "journal"> & {
    readonly observe: Pick<Engine["observe"], "host">;
  };
  readonly observer: Observer;
  /** The snapshot that the plan is based on. */
  readonly first: Snapshot;
  readonly creations: Pick<CreationWait, "settled">;
  readonly steps: Pick<Steps, "wait">;
}

/** A pass lasts as long as its removals; pods older than this are read again. */
const PODS_AGE_NS_MAX = 60_000_000_000n;

/** The whole node for removing images: listed once a second. */
export function freshNode(input: FreshNodeInput): Fresh<FreshNode> {
  const { engine, observer, first, creations, steps } = input;
  const { timer, journal, observe } = engine;
  let snapshot = first;
  let startNs = timer.monotonicNs();
  let podsNs = startNs;
  let missed: ReadonlySet<ImageId> = new Set();

  const withRules = async (signal: AbortSignal): Promise<Snapshot> => {
    const { host } = observe;
    const keep = await host.keepRules();
    const isOld = timer.monotonicNs() - podsNs > PODS_AGE_NS_MAX;
    const pods = await (isOld ? host.pods(signal) : host.newerPods(snapshot.pods, signal));
    if (isOld) podsNs = timer.monotonicNs();
    return { ...snapshot, keep, pods };
  };
  let listsNs = 0n;
  const list = async (signal: AbortSignal): Promise<Snapshot> => {
    startNs = timer.monotonicNs();
    const previous = await withRules(signal);
    const beginNs = timer.monotonicNs();
    const next = await observer.refresh(previous, signal, () => {
      listsNs = timer.monotonicNs() - beginNs;
    });
    // Under pressure the pass removes containers meanwhile.
    const others = previous.containers.filter(({ id }) => !observer.pods.removed.has(id));
    if (next.containers.length === 0 && others.length > 0)
      throw new RuntimeError("failed", vanishedWords(others.length, previous));
    if (next.pods !== previous.pods) podsNs = timer.monotonicNs();
    snapshot = next;
    const listed = new Set(next.images.map(({ id }) => id));
    const missing = first.images.flatMap(({ id }) => (listed.has(id) ? [] : [id]));
    missed = new Set([...missed, ...missing]);
    return next;
  };
  return new Fresh({
    timer,
    say: (message) => journal.say(1, message),
    read: async (signal) => {
      const next = () => steps.wait("lists", () => list(signal));
      const settled = await creations.settled(await next(), next);
      return { value: { ...settled, missed }, startNs, listsNs };
    },
  });
}

const vanishedWords = (count: number, { runtime }: Snapshot): string =>
  `the runtime at ${runtime.endpoint} lists no container, but listed ${count} a moment ago; crigc removes no image on such a list, and the next pass tries again`;

export interface JudgementInput {
  /** What the plan was decided from. */
  readonly facts: Facts;
  /** The current ledger, including what another process or loop recorded since the plan was made. */
  readonly memory: LedgerMemory;
  /** A new hold also stops the running pass. */
  readonly hold: () => HoldState;
}

/**
 * Judges candidates on the fresh node by the rules of the plan: the node once per set of lists, then each candidate.
 * Returns why it is kept after all; `null`: it may be removed.
 */
export function freshJudgement({ facts, memory, hold }: JudgementInput) {
  let judged: { readonly snapshot: Snapshot; readonly recheck: Recheck } | null = null;
  return (candidate: ImageCandidate, fresh: FreshNode): ImageKeepReason | null => {
    const { snapshot, block, missed } = fresh;
    if (hold().kind !== "none") return { kind: "blocked", block: "on-hold" };
    if (block !== null) return { kind: "blocked", block: block.kind };
    // Judged with the lists, by the newest records.
    const creationPatience = { isOver: true, own: null };
    if (judged?.snapshot !== snapshot) {
      const now = { ...facts, snapshot, hold: { kind: "none" } as const, creationPatience };
      judged = { snapshot, recheck: recheckImages(now) };
    }
    const isAnother =
      missed.has(candidate.image.id) || isRecreated(candidate, facts, memory.current());
    return (
      judged.recheck(candidate) ?? (isAnother ? changed("it was removed and created again") : null)
    );
  };
}

/**
 * Whether another loop or process saw the image missing, so that it is not the one that was planned. The kubelet does not
 * notice what others saw, but the keep rules do.
 */
function isRecreated(
  { image: { id } }: ImageCandidate,
  { limits, ledger }: Facts,
  { images }: Ledger,
): boolean {
  const [now, planned] = [images.get(id), ledger.images.get(id)];
  return (
    limits.images.compat !== "kubelet" &&
    (now?.firstSeenWatched !== planned?.firstSeenWatched ||
      now?.ageRestartedWatched !== planned?.ageRestartedWatched)
  );
}
