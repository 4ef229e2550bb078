/** Waits for pods that are starting, within the patience of one pass; after that the pass goes on. */

import type { Purpose } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { seconds, toMs } from "../model/time.ts";
import { startingBlock } from "../policy/image/judge.ts";
import { imageBlock } from "../report/reasons.ts";
import type { Engine } from "./ports.ts";

const UNDER_PRESSURE = seconds(5);
const OTHERWISE = seconds(150);
const PAUSE_MS = 250;

export interface StartingWaitOptions {
  readonly purpose: Purpose;
  /** Aborts when the pass should no longer wait. */
  readonly endWaits: AbortSignal;
  /** Called with the block when a wait begins, and with `null` when it ends. */
  readonly waits?: ((block: RemovalBlock | null) => void) | undefined;
}

/** One for each pass. */
export class StartingWait {
  readonly #engine: Pick<Engine, "timer" | "journal" | "passes">;
  readonly #options: StartingWaitOptions;
  readonly #isUnderPressure: boolean;
  readonly #limitNs: bigint;
  /** Pods that an earlier pass has waited for while the pressure lasts. */
  readonly #awaited: ReadonlySet<string>;
  #waitedNs = 0n;

  constructor(engine: Pick<Engine, "timer" | "journal" | "passes">, options: StartingWaitOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#isUnderPressure = options.purpose.kind === "pressure";
    this.#limitNs = this.#isUnderPressure ? UNDER_PRESSURE : OTHERWISE;
    this.#awaited = new Set(this.#isUnderPressure ? engine.passes.awaited : []);
  }

  /** Looks again until no pod is starting, or the pass may no longer wait. */
  async untilStarted(first: Snapshot, again: () => Promise<Snapshot>): Promise<void> {
    const { timer, passes } = this.#engine;
    const { endWaits } = this.#options;
    const blockOf = (snapshot: Snapshot) =>
      this.#waitedNs >= this.#limitNs || endWaits.aborted
        ? null
        : startingBlock(snapshot, this.#awaited);
    let block = blockOf(first);
    if (block === null) return;
    this.#report(block);
    let snapshot = first;
    while (block !== null) {
      if (this.#isUnderPressure) for (const { uid } of block.pods) passes.awaited.add(uid);
      const startNs = timer.monotonicNs();
      const leftMs = toMs(seconds(Number(this.#limitNs - this.#waitedNs) / 1e9));
      await timer.sleep(Math.max(1, Math.min(PAUSE_MS, leftMs)), endWaits);
      if (!endWaits.aborted) snapshot = await again();
      this.#waitedNs += timer.monotonicNs() - startNs;
      block = blockOf(snapshot);
    }
    this.#report(null);
  }

  #report(block: RemovalBlock | null): void {
    const message =
      block === null
        ? "Image removal waits no longer"
        : `Image removal waits: ${imageBlock.text(block)}`;
    this.#engine.journal.say(1, message);
    this.#options.waits?.(block);
  }
}
