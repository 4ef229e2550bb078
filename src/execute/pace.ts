/** The pace of a pass: a limit of removals, a pause between them, and the request to stop. */

import type { Timer } from "../model/ports.ts";
import { type Duration, toMs } from "../model/time.ts";

export type Leave = "go" | "stopped" | "removal-limit";

export interface PaceOptions {
  readonly maximumRemovals: number | null;
  readonly removalInterval: Duration;
  readonly timer: Timer;
  readonly signal: AbortSignal;
}

export class Pace {
  readonly #options: PaceOptions;
  #removals = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Called before each removal, and counts it if it may proceed. */
  async next(): Promise<Leave> {
    const leave = await this.allows();
    if (leave === "go") this.count();
    return leave;
  }

  /** The same for a removal that may not happen; call `count` when it does. */
  async allows(): Promise<Leave> {
    const { maximumRemovals, removalInterval, timer, signal } = this.#options;
    if (signal.aborted) return "stopped";
    if (maximumRemovals !== null && this.#removals >= maximumRemovals) return "removal-limit";
    if (this.#removals > 0 && removalInterval > 0n)
      await timer.sleep(toMs(removalInterval), signal);
    return signal.aborted ? "stopped" : "go";
  }

  count(): void {
    this.#removals += 1;
  }
}
