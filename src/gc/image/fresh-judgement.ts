/** Judges candidates again on the current node: the node once per set of lists, then each candidate. */

import type { ImageCandidate } from "../../model/plan.ts";
import type { ImageBlock, ImageKeepReason } from "../../model/reason.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { changed, type Recheck, recheckImages } from "../../policy/image/judge.ts";
import type { FreshLists, ImageExecution } from "./image-execution.ts";

interface Judged {
  readonly snapshot: Snapshot;
  readonly recheck: Recheck;
}

export class FreshJudgement {
  readonly #execution: ImageExecution;
  readonly #signal: AbortSignal;
  /** By the latest lists: containers that are being created, for which the pass may wait no longer. */
  #block: ImageBlock | null = null;
  #judged: Judged | null = null;

  constructor(execution: ImageExecution, signal: AbortSignal) {
    this.#execution = execution;
    this.#signal = signal;
  }

  /** Fresh lists, after a wait for containers that are being created. In a hurry their block ends the pass. */
  async lists(): Promise<FreshLists> {
    const { lists, timer, creations } = this.#execution;
    const first = await lists(this.#signal);
    if (this.#judged?.snapshot === first.snapshot) return first;
    const next = (): Promise<FreshLists> => lists(this.#signal, timer.monotonicNs());
    const { fresh, block } = await creations.settled(first, next);
    this.#block = block;
    return fresh;
  }

  /** Why the candidate is kept after all; `null`: it may be removed. */
  recheck(candidate: ImageCandidate, fresh: FreshLists): ImageKeepReason | null {
    if (this.#execution.hold().kind !== "none") return { kind: "blocked", block: "on-hold" };
    if (this.#block !== null) return { kind: "blocked", block: this.#block.kind };
    return (
      this.#rechecking(fresh.snapshot)(candidate) ?? this.#recreatedSincePlan(candidate, fresh)
    );
  }

  #rechecking(snapshot: Snapshot): Recheck {
    if (this.#judged?.snapshot === snapshot) return this.#judged.recheck;
    const recheck = recheckImages({
      ...this.#execution.facts,
      snapshot,
      hold: { kind: "none" },
      // Judged with the lists, by the newest records.
      creationPatience: { isOver: true, own: null },
    });
    this.#judged = { snapshot, recheck };
    return recheck;
  }

  /**
   * An image that was missing from a list of this pass, or that another loop or process saw missing, is not the one
   * that was planned. The kubelet does not notice what others saw.
   */
  #recreatedSincePlan(
    { image: { id } }: ImageCandidate,
    { missed }: FreshLists,
  ): ImageKeepReason | null {
    const { facts, memory } = this.#execution;
    const { limits, ledger } = facts;
    const back = changed("it was removed and created again");
    if (missed.has(id)) return back;
    if (limits.images.compat === "kubelet") return null;
    const [now, planned] = [memory.current().images.get(id), ledger.images.get(id)];
    const isSame =
      now?.firstSeenWatched === planned?.firstSeenWatched &&
      now?.ageRestartedWatched === planned?.ageRestartedWatched;
    return isSame ? null : back;
  }
}
