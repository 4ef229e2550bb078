/**
 * One stage of a container pass: removes items of different pods in parallel, until done or the runtime no longer
 * answers.
 */

import type { Backoff } from "./backoff.ts";

/** After this many unanswered calls a stage ends: waiting for more would delay everything else. */
const UNANSWERED_MAX = 2;

/** `answered` also if no call was made. */
export type Answer = "answered" | "unanswered";

export class Stage {
  /** `containers`, for messages. */
  readonly #name: string;
  readonly #backoff: Backoff;
  #unanswered = 0;
  #failed = false;

  constructor(name: string, backoff: Backoff) {
    this.#name = name;
    this.#backoff = backoff;
  }

  /**
   * Items of one group run in sequence. After an unanswered call, one of several lanes takes no further group, and the
   * rest of its own comes last. If one rejects, no other starts, and all that have started are awaited.
   */
  async run<T>(
    groups: Iterable<readonly T[]>,
    lanes: number,
    work: (item: T) => Promise<Answer>,
  ): Promise<void> {
    const waiting = groups[Symbol.iterator]();
    const left: (readonly T[])[] = [];
    const lane = async (): Promise<void> => {
      for (let group = waiting.next(); group.done !== true; group = waiting.next()) {
        for (const [index, item] of group.value.entries()) {
          if (this.#failed || this.#isOver()) return;
          const answer = await work(item);
          if (answer === "answered" || lanes === 1) continue;
          left.push(group.value.slice(index + 1));
          return;
        }
      }
    };
    const guarded = async (): Promise<void> => {
      try {
        await lane();
      } catch (thrown) {
        this.#failed = true;
        throw thrown;
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: lanes }, guarded));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const rest = left.flat();
    if (rest.length > 0) await this.run([rest], 1, work);
  }

  /** Why the ID is skipped for now; `undefined` if it is not. */
  leftAlone(id: string): string | undefined {
    const leftMs = this.#backoff.leftMs(id);
    if (leftMs === 0) return undefined;
    return `the runtime did not answer; crigc tries again in ${Math.ceil(leftMs / 60_000)} min`;
  }

  /** Records whether a call about the ID was answered. */
  note(id: string, unanswered: boolean): Answer {
    if (!unanswered) {
      this.#backoff.answered(id);
      return "answered";
    }
    this.#unanswered += 1;
    this.#backoff.unanswered(id);
    return "unanswered";
  }

  /** The stage's error; `null` if it completed. */
  error(): string | null {
    if (!this.#isOver()) return null;
    return `${this.#name}: ${this.#unanswered} calls timed out; the rest is left to the next pass`;
  }

  #isOver(): boolean {
    return this.#unanswered >= UNANSWERED_MAX;
  }
}
