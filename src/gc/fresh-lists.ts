/** The node just before a removal: lists at most a second old. */

import { RuntimeError } from "../model/errors.ts";
import type { Timer } from "../model/ports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { larger } from "../model/values.ts";
import type { ReadEngine } from "./ports.ts";
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
