/** What came of a refused removal: the kubelet or an operator may have removed the same object, or be removing it. */

import { failureCode, wasUnanswered } from "../model/errors.ts";
import type { Timer } from "../model/ports.ts";

/** Waits of all refused removals of a pass together; the kubelet's take well under a second each. */
const PATIENCE_MS = 5_000;
const PAUSE_MS = 250;

/** `busy`: another removal of the object is still in progress. */
export type Fate = "gone" | "busy" | "still-there";

export class OthersRemovals {
  readonly #timer: Timer;
  readonly #signal: AbortSignal;
  #leftMs = PATIENCE_MS;

  constructor(timer: Timer, signal: AbortSignal) {
    this.#timer = timer;
    this.#signal = signal;
  }

  /** `isThere` may reject, which leaves the failure as it is. */
  async fateAfter(failure: unknown, isThere: () => Promise<boolean>): Promise<Fate> {
    // Asking a runtime that does not answer would take another timeout.
    if (wasUnanswered(failure)) return "still-there";
    const otherwise = failureCode(failure) === "busy" ? "busy" : "still-there";
    try {
      while (await isThere()) {
        if (otherwise !== "busy" || this.#leftMs <= 0 || this.#signal.aborted) return otherwise;
        this.#leftMs -= PAUSE_MS;
        await this.#timer.sleep(PAUSE_MS, this.#signal);
      }
      return "gone";
    } catch {
      return otherwise;
    }
  }
}
