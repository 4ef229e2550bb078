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

/** A pass lasts as long as its removals; pods older than this are read again. */
const PODS_AGE_NS_MAX = 60_000_000_000n;

export interface FreshNodeInput {
  readonly engine: Pick<Engine, "timer" | "observe">;
  readonly observer: Observer;
  /** What the plan is based on, and when its lists were requested. */
  readonly first: Snapshot;
  readonly listedNs: bigint;
  readonly signal: AbortSignal;
}

/** The whole node for removing images. */
export function freshNode(input: FreshNodeInput): Fresh<Snapshot> {
  const { engine, observer, first, listedNs, signal } = input;
  const { timer, observe } = engine;
  let snapshot = first;
  let podsNs = listedNs;
  const read = async (): Promise<Snapshot> => {
    const keep = await observe.host.keepRules();
    const isOld = timer.monotonicNs() - podsNs > PODS_AGE_NS_MAX;
    const pods = isOld ? await observe.host.pods(signal) : snapshot.pods;
    if (isOld) podsNs = timer.monotonicNs();
    const next = await observer.refresh({ ...snapshot, keep, pods }, signal);
    const others = snapshot.containers.filter(({ id }) => !observer.pods.removed.has(id));
    if (next.containers.length === 0 && others.length > 0)
      throw new RuntimeError("failed", vanishedWords(others.length, snapshot));
    return (snapshot = next);
  };
  return new Fresh(timer, read, { value: first, startNs: listedNs });
}

const vanishedWords = (count: number, { runtime }: Snapshot): string =>
  `the runtime at ${runtime.endpoint} lists no container, but listed ${count} a moment ago; crigc removes no image on such a list, and the next pass tries again`;
