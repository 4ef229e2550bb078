/** Detects a pass that makes no progress, so that it ends before it has removed everything in vain. */

import { RuntimeError, type RuntimeErrorKind } from "../../model/errors.ts";

/** Gains of nothing in a row, on a device that is over while others hold images too, that end the pass. */
const REMOVALS_WITHOUT_GAIN = 3;
/** Removals in a row of which nobody knows whether the runtime is still at work on them, that end the pass. */
const REMOVALS_UNANSWERED = 2;

const UNANSWERED: readonly RuntimeErrorKind[] = ["deadline", "unreachable", "cancelled"];

/** Whether a removal with this failure may still be in progress. */
export const isUnanswered = (code: string): boolean => UNANSWERED.some((kind) => kind === code);

export const wasUnanswered = (thrown: unknown): boolean =>
  thrown instanceof RuntimeError && isUnanswered(thrown.kind);

export class Stall {
  #gained = 0n;
  #withoutGain = 0;
  #unanswered = 0;

  /** Takes in all that was gained so far, after one more removal. */
  noteGain(gained: bigint): void {
    this.#withoutGain = gained > this.#gained ? 0 : this.#withoutGain + 1;
    this.#gained = gained;
  }

  /** Whether removals gain nothing where it is full. */
  gainsNothing(): boolean {
    return this.#withoutGain >= REMOVALS_WITHOUT_GAIN;
  }

  /** Takes in whether a removal may still be under way. */
  noteAnswer(mayBeUnderWay: boolean): void {
    this.#unanswered = mayBeUnderWay ? this.#unanswered + 1 : 0;
  }

  /** Why no more should be asked for; `null`: nothing speaks against it. To ask for ever more would take more than is needed. */
  unanswered(): string | null {
    if (this.#unanswered < REMOVALS_UNANSWERED) return null;
    return `${this.#unanswered} removals in a row timed out, and the runtime may still be working on them; the rest is left to the next pass`;
  }
}
