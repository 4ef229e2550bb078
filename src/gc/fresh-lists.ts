/** The node just before a removal: lists at most a second old, and no pod that is starting for which the pass waits. */

import { RuntimeError } from "../model/errors.ts";
import type { Purpose } from "../model/plan.ts";
import type { Timer } from "../model/ports.ts";
import type { RemovalBlock } from "../model/reason.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { duration, seconds, toMs } from "../model/time.ts";
import { larger } from "../model/values.ts";
import { startingBlock } from "../policy/image/judge.ts";
import { imageBlock } from "../report/reasons.ts";
import { readPodDirectories } from "./observe.ts";
import type { Engine, ReadEngine } from "./ports.ts";
import type { Begun } from "./prepare.ts";

const AGE_NS_MAX = 1_000_000_000n;

/** A value read from the node, and read again once it is older than a second, or than it takes to read it twice. */
export class Fresh<T> {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #read: () => Promise<T>;
  #value: T;
  #untilNs: bigint;

  /** `first`: as read before, and when it was requested, by the monotonic clock. */
  constructor(
    timer: Pick<Timer, "monotonicNs">,
    read: () => Promise<T>,
    first: { readonly value: T; readonly startNs: bigint },
  ) {
    this.#timer = timer;
    this.#read = read;
    this.#value = first.value;
    this.#untilNs = first.startNs + AGE_NS_MAX;
  }

  /** As last read. */
  get value(): T {
    return this.#value;
  }

  /** Something contradicts the value: the next `get` reads again. */
  expire(): void {
    this.#untilNs = -1n;
  }

  async get(): Promise<T> {
    return this.#timer.monotonicNs() <= this.#untilNs ? this.#value : this.again();
  }

  async again(): Promise<T> {
    const startNs = this.#timer.monotonicNs();
    this.#value = await this.#read();
    const tookNs = this.#timer.monotonicNs() - startNs;
    this.#untilNs = startNs + larger(AGE_NS_MAX, 2n * tookNs);
    return this.#value;
  }
}

/** All that decides about images, from the lists of the plan on. */
export function freshNode(
  { timer, memory }: Pick<ReadEngine, "timer" | "memory">,
  { observer, snapshot, listedNs }: Begun,
  signal: AbortSignal,
): Fresh<Snapshot> {
  const read = async (): Promise<Snapshot> => {
    const next = await observer.refresh(node.value, signal);
    // What this pass has removed is no longer in the ledger.
    if (next.containers.length === 0 && memory.current().containers.size > 0)
      throw new RuntimeError(
        "failed",
        `the runtime at ${next.runtime.endpoint} lists no container, but listed some a moment ago; crigc removes no image on such a list, and the next pass tries again`,
      );
    return next;
  };
  const node: Fresh<Snapshot> = new Fresh(timer, read, { value: snapshot, startNs: listedNs });
  return node;
}

// Waits for pods that are starting, within the patience of one pass; after that the pass goes on

const UNDER_PRESSURE = seconds(5);
const OTHERWISE = seconds(150);
const PAUSE_MS = 250;

export interface StartingWait {
  readonly node: Fresh<Snapshot>;
  readonly purpose: Purpose;
  /** Aborts when the pass should no longer wait. */
  readonly endWaits: AbortSignal;
  /** Called with the block when a wait begins, and with `null` when it ends. */
  readonly waits?: ((block: RemovalBlock | null) => void) | undefined;
}

/** Of one pass: gives the node as it is, once no pod is starting, or the pass may no longer wait. */
export function untilStarted(
  { timer, journal, passes, observe }: Engine,
  { node, purpose, endWaits, waits }: StartingWait,
): () => Promise<Snapshot> {
  const isUnderPressure = purpose.kind === "pressure";
  // An earlier pass has waited for these while the pressure lasts.
  const awaited = new Set(isUnderPressure ? passes.awaited : []);
  let leftNs: bigint = isUnderPressure ? UNDER_PRESSURE : OTHERWISE;
  const blockOf = async (snapshot: Snapshot) => {
    if (leftNs <= 0n || endWaits.aborted) return null;
    // Containers may start between two lists, so directories are read after them.
    return startingBlock(await readPodDirectories(observe.host, snapshot), awaited);
  };
  const report = (block: RemovalBlock | null): void => {
    const words = block === null ? "waits no longer" : `waits: ${imageBlock.text(block)}`;
    journal.say(1, `Image removal ${words}`);
    waits?.(block);
  };
  return async () => {
    let block = await blockOf(await node.get());
    if (block === null) return node.value;
    report(block);
    while (block !== null) {
      if (isUnderPressure) for (const { uid } of block.pods) passes.awaited.add(uid);
      const startNs = timer.monotonicNs();
      await timer.sleep(Math.min(PAUSE_MS, toMs(duration(leftNs)) + 1), endWaits);
      if (!endWaits.aborted) await node.again();
      leftNs -= timer.monotonicNs() - startNs;
      block = await blockOf(node.value);
    }
    report(null);
    return node.value;
  };
}
