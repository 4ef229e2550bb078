/** The node just before a removal: lists at most a second old. */

import { RuntimeError } from "../model/errors.ts";
import type { Timer } from "../model/ports.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Observer } from "./observe.ts";
import type { Engine } from "./ports.ts";

const AGE_NS_MAX = 1_000_000_000n;

/** A value read from the node, and read again once it is older than a second, or than it takes to read it twice. */
export class Fresh<T> {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #read: () => Promise<T>;
  #last: { readonly value: T; readonly startNs: bigint; readonly tookNs: bigint } | null;

  /** `first`: as read before, and when it was requested. */
  constructor(
    timer: Pick<Timer, "monotonicNs">,
    read: () => Promise<T>,
    first: { readonly value: T; readonly startNs: bigint } | null = null,
  ) {
    this.#timer = timer;
    this.#read = read;
    this.#last = first === null ? null : { ...first, tookNs: 0n };
  }

  /** As last read. */
  get value(): T {
    if (this.#last === null) throw new Error("what was never read has no value");
    return this.#last.value;
  }

  /** Something contradicts the value: the next `get` reads again. */
  expire(): void {
    if (this.#last !== null) this.#last = { ...this.#last, startNs: -AGE_NS_MAX, tookNs: 0n };
  }

  async get(): Promise<T> {
    const last = this.#last;
    if (last === null) return this.again();
    const mostNs = 2n * last.tookNs > AGE_NS_MAX ? 2n * last.tookNs : AGE_NS_MAX;
    return this.#timer.monotonicNs() - last.startNs <= mostNs ? last.value : this.again();
  }

  async again(): Promise<T> {
    const startNs = this.#timer.monotonicNs();
    const value = await this.#read();
    this.#last = { value, startNs, tookNs: this.#timer.monotonicNs() - startNs };
    return value;
  }
}

export interface FreshNodeInput {
  readonly engine: Pick<Engine, "timer" | "observe" | "memory">;
  readonly observer: Observer;
  /** What the plan is based on. */
  readonly first: Snapshot;
  /** When its lists were requested; `null`: they no longer hold. */
  readonly listedNs: bigint | null;
  readonly signal: AbortSignal;
}

/** The whole node for removing images. */
export function freshNode(input: FreshNodeInput): Fresh<Snapshot> {
  const { engine, observer, first, listedNs, signal } = input;
  let last = first;
  const read = async (): Promise<Snapshot> => {
    const next = await observer.refresh(last, signal);
    // What this pass has removed is no longer in the ledger.
    if (next.containers.length === 0 && engine.memory.current().hadContainers)
      throw new RuntimeError("failed", vanishedWords(next));
    return (last = next);
  };
  const begin = listedNs === null ? null : { value: first, startNs: listedNs };
  return new Fresh(engine.timer, read, begin);
}

const vanishedWords = ({ runtime }: Snapshot): string =>
  `the runtime at ${runtime.endpoint} lists no container, but listed some a moment ago; crigc removes no image on such a list, and the next pass tries again`;
