/** Calls of a runtime that may be slow or silent: how many at once and how fast, when to stop, and what to ask again later. */

import { failureCode, RuntimeError, wasUnanswered } from "../model/errors.ts";
import type { RuntimeWriter, Timer } from "../model/ports.ts";
import { mapBounded } from "../model/values.ts";

/** Concurrent calls for details: enough to hide a socket's latency, too few to crowd out a kubelet. */
export const CALLS_AT_ONCE = 16;

/** After this many calls without an answer no more are made: each would take its whole deadline. */
export const UNANSWERED_MAX = 2;

/**
 * Asks about each item, side by side, until too many calls time out. `failed` gets the error of a call, or
 * `NotAsked`, and whether the call timed out or was not made. An error that it throws ends all of them.
 */
export async function askAll<T>(
  items: readonly T[],
  ask: (item: T) => Promise<void>,
  failed: (item: T, thrown: unknown, isSilent: boolean) => void,
): Promise<void> {
  let unanswered = 0;
  await mapBounded(items, CALLS_AT_ONCE, async (item) => {
    try {
      if (unanswered >= UNANSWERED_MAX) throw new NotAsked(unanswered);
      await ask(item);
    } catch (thrown) {
      if (wasUnanswered(thrown)) unanswered += 1;
      failed(item, thrown, thrown instanceof NotAsked || wasUnanswered(thrown));
    }
  });
}

export class NotAsked extends Error {
  constructor(unanswered: number) {
    super(`not requested, because ${unanswered} other calls got no answer`);
  }
}

/** Longer than a pass that waits for deadlines of two minutes. */
const FIRST_BACKOFF_MS = 5 * 60_000;
const LONGEST_BACKOFF_MS = 60 * 60_000;

interface Silence {
  readonly untilNs: bigint;
  readonly waitMs: number;
  readonly triedAtOnce: boolean;
}

/**
 * Containers and sandboxes that timed out: skipped for a while, longer each time. Lasts as long as the process. A restart of
 * the runtime ends it once for each, no further time: the call may be what makes the runtime crash.
 */
export class Backoff {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #silent = new Map<string, Silence>();
  #instance = "";

  constructor(timer: Pick<Timer, "monotonicNs">) {
    this.#timer = timer;
  }

  /** Why the ID is skipped for now; `undefined` if it is not. */
  leftAlone(id: string): string | undefined {
    const silence = this.#silent.get(id);
    const leftMs =
      silence === undefined
        ? 0
        : Number((silence.untilNs - this.#timer.monotonicNs()) / 1_000_000n);
    if (leftMs <= 0) return undefined;
    return `the runtime did not answer; crigc tries again in ${Math.ceil(leftMs / 60_000)} min`;
  }

  /** `instance`: of the runtime as it runs now; "" if unknown. */
  observed(instance: string): void {
    const isRestarted = this.#instance !== "" && instance !== "" && this.#instance !== instance;
    this.#instance = instance || this.#instance;
    for (const [id, silence] of isRestarted ? this.#silent : [])
      if (!silence.triedAtOnce)
        this.#silent.set(id, { ...silence, untilNs: 0n, triedAtOnce: true });
  }

  /** Records whether a call about the ID was answered. */
  note(id: string, isSilent: boolean): void {
    if (!isSilent) {
      this.#silent.delete(id);
      return;
    }
    const { waitMs: before = FIRST_BACKOFF_MS / 2, triedAtOnce = false } =
      this.#silent.get(id) ?? {};
    const waitMs = Math.min(before * 2, LONGEST_BACKOFF_MS);
    const untilNs = this.#timer.monotonicNs() + BigInt(waitMs) * 1_000_000n;
    this.#silent.set(id, { untilNs, waitMs, triedAtOnce });
  }

  /** Drops IDs that are no longer listed. */
  retain(listed: () => ReadonlySet<string>): void {
    if (this.#silent.size === 0) return;
    const ids = listed();
    for (const id of this.#silent.keys()) if (!ids.has(id)) this.#silent.delete(id);
  }
}

/** Waits of all refused removals of a pass together; the kubelet's take well under a second each. */
const OTHERS_PATIENCE_MS = 5_000;
const OTHERS_PAUSE_MS = 250;

/** What came of a refused removal. `busy`: another removal of the object is still in progress. */
export type Fate = "gone" | "busy" | "still-there";

/** Removals by the kubelet or an operator of what this pass removes too. */
export class OthersRemovals {
  readonly #timer: Timer;
  readonly #signal: AbortSignal;
  #leftMs = OTHERS_PATIENCE_MS;

  constructor(timer: Timer, signal: AbortSignal) {
    this.#timer = timer;
    this.#signal = signal;
  }

  /** `isThere` may reject, which leaves the failure as it is. */
  async fateAfter(failure: unknown, isThere: () => Promise<boolean>): Promise<Fate> {
    // Asking a runtime that does not answer would take another timeout.
    if (wasUnanswered(failure)) return "still-there";
    const otherwise = failureCode(failure) === "busy" ? "busy" : "still-there";
    try {
      while (await isThere()) {
        if (otherwise !== "busy" || this.#leftMs <= 0 || this.#signal.aborted) return otherwise;
        this.#leftMs -= OTHERS_PAUSE_MS;
        await this.#timer.sleep(OTHERS_PAUSE_MS, this.#signal);
      }
      return "gone";
    } catch {
      return otherwise;
    }
  }
}

/**
 * Works on groups of items side by side until all are done, or too many calls are not answered, which `work` tells;
 * returns how many were not. Items of one group run in sequence; after one that hangs a lane takes no other. If one
 * rejects, no other starts, and all that have started are awaited.
 */
export async function inLanes<T>(
  groups: Iterable<readonly T[]>,
  lanes: number,
  work: (item: T) => Promise<boolean>,
): Promise<number> {
  const waiting = groups[Symbol.iterator]();
  let unanswered = 0;
  let hasFailed = false;
  const lane = async (): Promise<void> => {
    let hangs = false;
    for (let group = waiting.next(); group.done !== true; group = waiting.next()) {
      for (const item of group.value) {
        if (hasFailed || unanswered >= UNANSWERED_MAX) return;
        const hung = await work(item).catch((thrown: unknown) => {
          hasFailed = true;
          throw thrown;
        });
        hangs ||= hung;
        if (hung) unanswered += 1;
      }
      // Another group would hang as long; the other lanes take it if they can.
      if (hangs) return;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return unanswered;
}

/** Abort reason of a container pass that disk pressure waits for. With any other reason (SIGTERM) requested removals are awaited. */
export const HURRY = new DOMException("disk pressure cannot wait", "AbortError");

/** How long requested removals are still awaited then, and containers that make no progress. A call given up after as long counts as unanswered. */
export const HANGING_MS = 5_000;
export const HANGING_NS = BigInt(HANGING_MS) * 1_000_000n;

/**
 * The writer of a pass over containers. While disk pressure waits, a removal that hangs counts as unanswered after seconds,
 * not after its deadline of minutes; the runtime may go on with it, and a later pass sees what came of it.
 */
export function hurried(writer: RuntimeWriter, timer: Timer, signal: AbortSignal): RuntimeWriter {
  const inTime = async (call: Promise<void>): Promise<void> => {
    const [late, answered] = [Promise.withResolvers<never>(), new AbortController()];
    const hurry = (): void => {
      if (signal.reason !== HURRY) return;
      const message = `no answer within ${HANGING_MS / 1000} s, and ${HURRY.message}`;
      void timer
        .sleep(HANGING_MS, answered.signal)
        .then(() => late.reject(new RuntimeError("deadline", message)));
    };
    if (signal.aborted) hurry();
    signal.addEventListener("abort", hurry, { signal: answered.signal });
    return Promise.race([call, late.promise]).finally(() => answered.abort());
  };
  return {
    ...writer,
    removeContainer: async (id) => inTime(writer.removeContainer(id)),
    removeSandbox: async (id) => inTime(writer.removeSandbox(id)),
  };
}

/** Waits until the work has ended or failed (`true`), or hangs. */
export async function unlessHanging(work: Promise<unknown>, timer: Timer): Promise<boolean> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  await Promise.race([work.then(end, end), timer.sleep(HANGING_MS, ended.signal)]);
  return ended.signal.aborted;
}

export const silentWords = (count: number): string =>
  `${count} removals in a row got no answer, and the runtime may still be working on them; the rest is left to the next pass`;
