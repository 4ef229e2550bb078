/** Waits, within the bounds of a pass, for containers that are being created; says so, and counts passes that were held up. */

import { type CreationId, creationId } from "../model/ids.ts";
import type { Pass } from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { LedgerMemory } from "../model/ports.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Duration, seconds, toMs } from "../model/time.ts";
import { ageNow } from "../policy/age-clock.ts";
import type { CreationPatience } from "../policy/facts.ts";
import { creationBlock, rememberAwaited, rememberCreations } from "../policy/image/creations.ts";
import { imageBlock } from "../report/image-reasons.ts";
import type { Observer } from "./observe.ts";
import { blocksOf } from "./pass-warnings.ts";
import type { Engine } from "./ports.ts";
import type { Steps } from "./steps.ts";

const WAIT_UNDER_PRESSURE = seconds(5);
const WAIT_OTHERWISE = seconds(30);
/** After two passes in a row that waited and removed nothing, the next one goes on. */
const HELD_UP_PASSES_MAX = 2;
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 2_000;

export interface CreationWaitOptions {
  readonly purpose: Purpose;
  readonly steps: Pick<Steps, "wait">;
  /** Aborts when the pass should no longer wait. */
  readonly soonest: AbortSignal;
  /** Called with the block when a wait begins, and with `null` when it ends. */
  readonly waits?: ((block: ImageBlock | null) => void) | undefined;
}

export interface Settled {
  readonly snapshot: Snapshot;
  /** `null`: no container is being created for which the pass may wait. */
  readonly block: ImageBlock | null;
}

/** One for each pass. */
export class CreationWait {
  readonly #engine: Pick<Engine, "memory" | "timer" | "limits" | "journal">;
  readonly #options: CreationWaitOptions;
  readonly #isUnderPressure: boolean;
  readonly #limit: Duration;
  readonly #own = new Set<CreationId>();
  #waitedNs = 0n;

  constructor(
    engine: Pick<Engine, "memory" | "timer" | "limits" | "journal">,
    options: CreationWaitOptions,
  ) {
    this.#engine = engine;
    this.#options = options;
    this.#isUnderPressure = options.purpose.kind === "pressure";
    this.#limit = this.#isUnderPressure ? WAIT_UNDER_PRESSURE : WAIT_OTHERWISE;
  }

  patience(): CreationPatience {
    const isHeldUp = this.#engine.memory.current().heldUpPasses >= HELD_UP_PASSES_MAX;
    const goesOn = this.#isUnderPressure || isHeldUp;
    return {
      isOver: goesOn && this.#hasWaitedInFull(),
      own: this.#isUnderPressure ? this.#own : null,
    };
  }

  mayWait(): boolean {
    return !this.#hasWaitedInFull() && !this.#options.soonest.aborted;
  }

  #hasWaitedInFull(): boolean {
    return this.#waitedNs >= this.#limit;
  }

  /** Lists the node until no container is being created, or the pass may no longer wait. */
  async untilCreated(first: Snapshot, observer: Observer, signal: AbortSignal): Promise<void> {
    let previous = first;
    await this.settled(first, async () => {
      previous = await observer.refresh(previous, signal);
      return previous;
    });
  }

  /** Resolves without a block once no container is being created, or with one once the pass may no longer wait. */
  async settled(first: Snapshot, next: () => Promise<Snapshot>): Promise<Settled> {
    const block = this.#block(first);
    if (block === null || !this.mayWait()) return { snapshot: first, block };
    this.#report(block);
    try {
      return await this.#options.steps.wait("creation", () =>
        this.#wait({ snapshot: first, block }, next),
      );
    } finally {
      this.#report(null);
    }
  }

  async #wait(first: Settled, next: () => Promise<Snapshot>): Promise<Settled> {
    const { timer } = this.#engine;
    const { soonest } = this.#options;
    let { snapshot, block } = first;
    while (block !== null && this.mayWait()) {
      this.#noteAwaited(block);
      const startNs = timer.monotonicNs();
      await timer.sleep(this.#pauseMs(), soonest);
      if (!soonest.aborted) snapshot = await next();
      this.#waitedNs += timer.monotonicNs() - startNs;
      block = this.#block(snapshot);
    }
    return { snapshot, block };
  }

  /** Short at first, then longer, to spare a busy node. */
  #pauseMs(): number {
    const waitedMs = Number(this.#waitedNs) / 1e6;
    const pauseMs = Math.min(Math.max(waitedMs / 4, PAUSE_MS), PAUSE_MS_MAX);
    return Math.ceil(Math.min(pauseMs, toMs(this.#limit) - waitedMs));
  }

  /** Records what it finds. */
  #block(snapshot: Snapshot): ImageBlock | null {
    const { memory } = this.#engine;
    const before = memory.current();
    const clocks = snapshot.creations?.clocks ?? snapshot.clocks;
    const watched = ageNow(before, clocks);
    const seen = { ...snapshot, now: clocks.wall };
    const creations = rememberCreations(before, seen, watched);
    const ledger = creations === before.creations ? before : { ...before, creations };
    if (ledger !== before) memory.replace(ledger);
    const [block] = creationBlock({ snapshot, ledger, creationPatience: this.patience() });
    return block ?? null;
  }

  #noteAwaited(block: ImageBlock): void {
    if (!this.#isUnderPressure || block.kind !== "pod-starting") return;
    const { memory } = this.#engine;
    const ids = block.containers.map(creationId);
    for (const id of ids) this.#own.add(id);
    const before = memory.current();
    const ledger = rememberAwaited(before, ids);
    if (ledger !== before) memory.replace(ledger);
  }

  #report(block: ImageBlock | null): void {
    const after = this.#isUnderPressure ? "; under disk pressure the pass goes on after 5 s" : "";
    const message =
      block === null
        ? "Image removal waits no longer"
        : `Image removal waits: ${imageBlock.text(block)}${after}`;
    this.#engine.journal.say(1, message);
    this.#options.waits?.(block);
  }

  /** Counts the passes in a row that removed no image because they were held up; one that was cut short does not count. */
  rememberHeldUp(memory: LedgerMemory, pass: Pass): void {
    const { images, dryRun } = pass;
    if (images === null || dryRun || this.#isUnderPressure || images.end === "stopped") return;
    const isHeldUp =
      images.end === "blocked" &&
      blocksOf(pass).every((kind) => kind === "pod-starting") &&
      images.items.every(({ result }) => result.kind === "skipped");
    if (isHeldUp && !this.#hasWaitedInFull()) return;
    const before = memory.current();
    const heldUpPasses = isHeldUp ? before.heldUpPasses + 1 : 0;
    if (heldUpPasses !== before.heldUpPasses) memory.replace({ ...before, heldUpPasses });
  }
}
