/** Detects a pass without progress, to end it before it has removed everything in vain. */

import type { ImageCandidate } from "../../model/plan.ts";

/** Removals in a row without gain on the full device, while others hold images too, that end the pass. */
const REMOVALS_WITHOUT_GAIN = 3;
/** Unanswered removals in a row, which the runtime may still be working on, that end the pass. */
const REMOVALS_UNANSWERED = 2;

export class Stall {
  #gained = 0n;
  #withoutGain = 0;
  #unanswered = 0;

  /** Records the total gain after one more removal. */
  noteGain({ image, frees }: Pick<ImageCandidate, "image" | "frees">, gained: bigint): void {
    // Others still have its layers: it frees nothing on any device, which shows nothing about the full one.
    if (image.sizeBytes > 0n && frees?.estimateBytes === 0n) return;
    this.#withoutGain = gained > this.#gained ? 0 : this.#withoutGain + 1;
    this.#gained = gained;
  }

  /** Whether removals free nothing on the full device. */
  gainsNothing(): boolean {
    return this.#withoutGain >= REMOVALS_WITHOUT_GAIN;
  }

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
