/** Waits, within the bounds of a pass, for containers that are being created. */

import { type CreationId, creationId } from "../../model/ids.ts";
import type { Limits } from "../../model/limits.ts";
import type { Timer } from "../../model/ports.ts";
import type { ImageBlock } from "../../model/reason.ts";
import { type Duration, seconds, toMs } from "../../model/time.ts";
import type { CreationPatience } from "../../policy/facts.ts";
import { creationBlock, rememberAwaited, rememberCreations } from "../../policy/image/creations.ts";
import { observedTime } from "../../policy/observed-time.ts";
import type {
  AwaitsCreations,
  FreshLists,
  ImageExecution,
  SettledCreations,
} from "./image-execution.ts";

const WAIT_UNDER_PRESSURE = seconds(5);
const WAIT_OTHERWISE = seconds(30);
/** After two passes in a row that waited and removed nothing, the next one goes on. */
const HELD_UP_PASSES_MAX = 2;
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 2_000;

export interface CreationWaitOptions extends Pick<ImageExecution, "memory" | "waiting"> {
  readonly timer: Timer;
  readonly limits: () => Limits;
  readonly isUnderPressure: boolean;
  /** Aborts when the pass should no longer wait. */
  readonly soonest: AbortSignal;
  /** Called with the block when a wait begins, and with `null` when it ends. */
  readonly waits: (block: ImageBlock | null) => void;
}

/** One for each pass. */
export class CreationWait implements AwaitsCreations {
  readonly #options: CreationWaitOptions;
  readonly #limit: Duration;
  readonly #own = new Set<CreationId>();
  #waitedNs = 0n;

  constructor(options: CreationWaitOptions) {
    this.#options = options;
    this.#limit = options.isUnderPressure ? WAIT_UNDER_PRESSURE : WAIT_OTHERWISE;
  }

  patience(): CreationPatience {
    const { isUnderPressure, memory } = this.#options;
    const goesOn = isUnderPressure || memory.current().heldUpPasses >= HELD_UP_PASSES_MAX;
    return { isOver: goesOn && this.hasWaitedInFull(), own: isUnderPressure ? this.#own : null };
  }

  hasWaitedInFull(): boolean {
    return this.#waitedNs >= this.#limit;
  }

  mayWait(): boolean {
    return !this.hasWaitedInFull() && !this.#options.soonest.aborted;
  }

  async settled(first: FreshLists, next: () => Promise<FreshLists>): Promise<SettledCreations> {
    const block = this.block(first);
    if (block === null || !this.mayWait()) return { fresh: first, block };
    const { waits, waiting } = this.#options;
    waits(block);
    try {
      return await waiting("creation", () => this.#wait({ fresh: first, block }, next));
    } finally {
      waits(null);
    }
  }

  async #wait(first: SettledCreations, next: () => Promise<FreshLists>): Promise<SettledCreations> {
    const { timer, soonest } = this.#options;
    let { fresh, block } = first;
    while (block !== null && this.mayWait()) {
      this.#noteAwaited(block);
      const startNs = timer.monotonicNs();
      await timer.sleep(this.#pauseMs(), soonest);
      if (!soonest.aborted) fresh = await next();
      this.#waitedNs += timer.monotonicNs() - startNs;
      block = this.block(fresh);
    }
    return { fresh, block };
  }

  /** Short at first, then longer, to spare a busy node. */
  #pauseMs(): number {
    const waitedMs = Number(this.#waitedNs) / 1e6;
    const pauseMs = Math.min(Math.max(waitedMs / 4, PAUSE_MS), PAUSE_MS_MAX);
    return Math.ceil(Math.min(pauseMs, toMs(this.#limit) - waitedMs));
  }

  /** Records what it finds. */
  block({ snapshot }: FreshLists): ImageBlock | null {
    const { memory, limits: current } = this.#options;
    const limits = current();
    const before = memory.current();
    const clocks = snapshot.creations?.clocks ?? snapshot.clocks;
    const { watched } = observedTime(before, clocks, limits.memory);
    const seen = { ...snapshot, now: clocks.wall };
    const creations = rememberCreations(before, seen, watched);
    const ledger = creations === before.creations ? before : { ...before, creations };
    if (ledger !== before) memory.replace(ledger);
    const [block] = creationBlock({ snapshot, ledger, limits, creationPatience: this.patience() });
    return block ?? null;
  }

  #noteAwaited(block: ImageBlock): void {
    if (!this.#options.isUnderPressure || block.kind !== "pod-starting") return;
    const { memory } = this.#options;
    const ids = block.containers.map(creationId);
    for (const id of ids) this.#own.add(id);
    const before = memory.current();
    const ledger = rememberAwaited(before, ids);
    if (ledger !== before) memory.replace(ledger);
  }
}
