/** The pace of a pass: a limit of removals, a pause between them, and the request to stop. */

import { isUnanswered } from "../model/errors.ts";
import type { ImageResult, RemovalResult } from "../model/outcome.ts";
import type { Timer } from "../model/ports.ts";
import { type Duration, toMs } from "../model/time.ts";

export type PaceVerdict = "go" | "stopped" | "removal-limit";

export interface PaceOptions {
  readonly maximumRemovals: number | null;
  readonly removalInterval: Duration;
  readonly timer: Timer;
  readonly signal: AbortSignal;
}

/** Refused removals do not count towards the limit; refused in every pass, they would leave nothing of it to the rest. */
export const isCounted = (result: ImageResult | RemovalResult): boolean =>
  result.kind === "removed" ||
  result.kind === "ghost" ||
  (result.kind === "failed" && isUnanswered(result.code));

export class Pace {
  readonly #options: PaceOptions;
  #begun = 0;
  #counted = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Called before each removal, which begins if it may proceed. */
  async next(): Promise<PaceVerdict> {
    const verdict = await this.allows();
    if (verdict === "go") this.begin();
    return verdict;
  }

  /** The same for a removal that may not happen; call `begin` when it does. */
  async allows(): Promise<PaceVerdict> {
    const { maximumRemovals, removalInterval, timer, signal } = this.#options;
    if (signal.aborted) return "stopped";
    if (maximumRemovals !== null && this.#counted >= maximumRemovals) return "removal-limit";
    if (this.#begun > 0 && removalInterval > 0n) await timer.sleep(toMs(removalInterval), signal);
    return signal.aborted ? "stopped" : "go";
  }

  begin(): void {
    this.#begun += 1;
  }

  /** Called with the result of each removal that began. */
  end(result: ImageResult | RemovalResult): void {
    if (isCounted(result)) this.#counted += 1;
  }
}
