/** Detects a runtime that does not answer, before a pass has asked it to remove everything. */

/** Unanswered removals in a row, which the runtime may still be working on, that end the pass. */
const REMOVALS_UNANSWERED = 2;

export class Stall {
  #unanswered = 0;

  /** Records whether a removal may still be in progress. */
  noteAnswer(mayBeUnderWay: boolean): void {
    this.#unanswered = mayBeUnderWay ? this.#unanswered + 1 : 0;
  }

  /** Why no more removals should be requested; `null` if they may. Further requests would remove more than needed. */
  unanswered(): string | null {
    if (this.#unanswered < REMOVALS_UNANSWERED) return null;
    return `${this.#unanswered} removals in a row timed out, and the runtime may still be working on them; the rest is left to the next pass`;
  }
}
