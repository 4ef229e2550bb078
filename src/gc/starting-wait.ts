/** Waits for pods that are starting, within the patience of one pass; after that the pass goes on. */

import type { Purpose } from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { duration, seconds, toMs } from "../model/time.ts";
import { startingBlock } from "../policy/image/judge.ts";
import { imageBlock } from "../report/reasons.ts";
import type { Fresh } from "./fresh-lists.ts";
import { readPodDirectories } from "./observe.ts";
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
  readonly #engine: Pick<Engine, "timer" | "journal" | "passes" | "observe">;
  readonly #options: StartingWaitOptions;
  readonly #isUnderPressure: boolean;
  /** Pods that an earlier pass has waited for while the pressure lasts. */
  readonly #awaited: ReadonlySet<string>;
  #leftNs: bigint;

  constructor(
    engine: Pick<Engine, "timer" | "journal" | "passes" | "observe">,
    options: StartingWaitOptions,
  ) {
    this.#engine = engine;
    this.#options = options;
    this.#isUnderPressure = options.purpose.kind === "pressure";
    this.#leftNs = this.#isUnderPressure ? UNDER_PRESSURE : OTHERWISE;
    this.#awaited = new Set(this.#isUnderPressure ? engine.passes.awaited : []);
  }

  /** The node as it is, once no pod is starting, or the pass may no longer wait. */
  async untilStarted(node: Fresh<Snapshot>): Promise<Snapshot> {
    const { timer, passes } = this.#engine;
    const { endWaits } = this.#options;
    let block = await this.#block(await node.get());
    if (block !== null) this.#report(block);
    else return node.value;
    while (block !== null) {
      if (this.#isUnderPressure) for (const { uid } of block.pods) passes.awaited.add(uid);
      const startNs = timer.monotonicNs();
      await timer.sleep(Math.min(PAUSE_MS, toMs(duration(this.#leftNs)) + 1), endWaits);
      if (!endWaits.aborted) await node.again();
      this.#leftNs -= timer.monotonicNs() - startNs;
      block = await this.#block(node.value);
    }
    this.#report(null);
    return node.value;
  }

  /** Containers may start between two lists, so directories are read after them. */
  async #block(snapshot: Snapshot): Promise<ReturnType<typeof startingBlock>> {
    if (this.#leftNs <= 0n || this.#options.endWaits.aborted) return null;
    const { host } = this.#engine.observe;
    return startingBlock(await readPodDirectories(host, snapshot), this.#awaited);
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
