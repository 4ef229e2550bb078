/** Judges candidates again on the current node: the node once per set of lists, then each candidate. */

import type { ImageCandidate } from "../../model/plan.ts";
import type { ImageKeepReason } from "../../model/reason.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type Duration, duration, toMs } from "../../model/time.ts";
import { podPause, podStarting } from "../../policy/blocks.ts";
import { changed, type Recheck, recheckImages } from "../../policy/image/recheck.ts";
import type { FreshLists, ImageExecution } from "./image-execution.ts";

interface Judged {
  readonly snapshot: Snapshot;
  readonly recheck: Recheck;
}

export class FreshJudgement {
  readonly #execution: ImageExecution;
  readonly #signal: AbortSignal;
  /** For starting pods, in the whole pass. */
  #waited: Duration;
  #judged: Judged | null = null;

  constructor(execution: ImageExecution, signal: AbortSignal) {
    this.#execution = execution;
    this.#signal = signal;
    this.#waited = execution.facts.waitedForPods;
  }

  /**
   * Returns fresh lists, and waits for starting pods: they may pull what no container uses yet. In a hurry it does not
   * wait, and their block ends the pass.
   */
  async lists(): Promise<FreshLists> {
    const { lists, timer, hurry, waiting } = this.#execution;
    for (;;) {
      const fresh = await lists(this.#signal);
      if (this.#judged?.snapshot === fresh.snapshot) return fresh;
      const waited = this.#waited;
      const starting = podStarting({ snapshot: fresh.snapshot, waitedForPods: waited });
      if (starting.length === 0 || hurry.aborted) return fresh;
      const pause = podPause(waited);
      const soonest = AbortSignal.any([this.#signal, hurry]);
      await waiting("creation", () => timer.sleep(toMs(pause), soonest));
      if (this.#signal.aborted) return fresh;
      this.#waited = duration(waited + pause);
    }
  }

  /** Why the candidate is kept after all; `null`: it may be removed. */
  recheck(candidate: ImageCandidate, fresh: FreshLists): ImageKeepReason | null {
    if (this.#execution.hold().kind !== "none") return { kind: "blocked", block: "on-hold" };
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
      waitedForPods: this.#waited,
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
