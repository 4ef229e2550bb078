/** What a loop does by the monotonic clock, which no change of the time of day moves: the ground of health. */

import { wasUnanswered } from "../../execute/image/stall.ts";
import type { Timer } from "../../model/ports.ts";
import type { Engine } from "../ports.ts";

/** A loop that does nothing when it should; `null` in its place: it is well. */
export interface Stalled {
  /** `working`: it runs, and makes no progress. `overdue`: its next run is late. */
  readonly kind: "working" | "overdue";
  readonly forMs: number;
}

export class LoopProgress {
  readonly #timer: Pick<Timer, "monotonicNs">;
  /** Whichever way it goes on, it has to by then. Waiting for the pass of another loop has no such time: that one has. */
  #state: { readonly kind: "pausing" | "waiting" | "working"; readonly ns: bigint };

  constructor(timer: Pick<Timer, "monotonicNs">) {
    this.#timer = timer;
    this.#state = { kind: "pausing", ns: timer.monotonicNs() };
  }

  pauses(forMs: number): void {
    this.#state = { kind: "pausing", ns: this.#in(forMs) };
  }

  waits(): void {
    this.#state = { kind: "waiting", ns: this.#in(0) };
  }

  /** Begins to work, or gets on with it; `mayTakeMs`: something is under way that is meant to take so long. */
  works(mayTakeMs = 0): void {
    const ns = this.#in(mayTakeMs);
    const before = this.#state;
    this.#state = {
      kind: "working",
      ns: before.kind === "working" && before.ns > ns ? before.ns : ns,
    };
  }

  stalled(): Stalled | null {
    const { kind, ns } = this.#state;
    const forMs = Number((this.#timer.monotonicNs() - ns) / 1_000_000n);
    if (kind === "waiting" || forMs <= 0) return null;
    return { kind: kind === "working" ? "working" : "overdue", forMs };
  }

  #in(ms: number): bigint {
    return this.#timer.monotonicNs() + BigInt(Math.ceil(ms)) * 1_000_000n;
  }
}

/** The engine of one loop: whatever is answered, and whatever is waited for on purpose, is its progress and no other's. */
export function noting(engine: Engine, progress: LoopProgress): Engine {
  const answered = <T extends object>(port: T): T => notingAnswers(port, () => progress.works());
  const { observe, timer } = engine;
  const writer = answered(engine.writer);
  return {
    ...engine,
    observe: { ...observe, runtime: answered(observe.runtime), disk: answered(observe.disk) },
    writer: {
      removeImage: (id, name) => writer.removeImage(id, name),
      removeContainer: (id) => writer.removeContainer(id),
      stopSandbox: (id, signal) => writer.stopSandbox(id, signal),
      removeSandbox: (id) => writer.removeSandbox(id),
      stopContainer: (id, graceSeconds, signal) => {
        progress.works(graceSeconds * 1000);
        return writer.stopContainer(id, graceSeconds, signal);
      },
      execSync: (id, command, signal) => {
        progress.works(command.timeoutSeconds * 1000);
        return writer.execSync(id, command, signal);
      },
    },
    remover: answered(engine.remover),
    timer: {
      monotonicNs: () => timer.monotonicNs(),
      sleep: (ms, signal) => {
        progress.works(ms);
        return timer.sleep(ms, signal);
      },
    },
  };
}

/** A refusal is an answer too; no answer is none. */
function notingAnswers<T extends object>(port: T, note: () => void): T {
  return new Proxy(port, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return async (...args: readonly unknown[]): Promise<unknown> => {
        try {
          const answer: unknown = await Reflect.apply(method, target, args);
          note();
          return answer;
        } catch (thrown) {
          if (!wasUnanswered(thrown)) note();
          throw thrown;
        }
      };
    },
  });
}
