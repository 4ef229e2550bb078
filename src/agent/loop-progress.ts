/** A loop's progress by the monotonic clock, which changes of the wall clock do not affect; the basis of health. */

import type { Engine } from "../gc/ports.ts";
import { wasUnanswered } from "../model/errors.ts";
import type { Timer } from "../model/ports.ts";

/** A loop that makes no progress when it should. */
export interface Stalled {
  /** `working`: it runs without progress. `overdue`: its next run is late. */
  readonly kind: "working" | "overdue";
  readonly forMs: number;
}

const NS_PER_MS = 1_000_000n;

export class LoopProgress {
  readonly #timer: Pick<Timer, "monotonicNs">;
  /** By `ns` it has to continue in some way. Waiting for another loop's pass has no such time: that loop has one. */
  #state: { readonly kind: "pausing" | "waiting" | "working"; readonly ns: bigint };

  /** When the last failure that counts ended. */
  #failedNs = 0n;

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

  /** Starts to work, or makes progress; `mayTakeMs` if something expected to take long is in progress. */
  works(mayTakeMs = 0): void {
    const ns = this.#in(mayTakeMs);
    const before = this.#state;
    this.#state = {
      kind: "working",
      ns: before.kind === "working" && before.ns > ns ? before.ns : ns,
    };
  }

  /** Whether a failure counts as one more in a row: one in each period, however often the loop runs. */
  isAnotherFailure(inARow: number, periodMs: number): boolean {
    const nowNs = this.#timer.monotonicNs();
    const isAnother =
      inARow === 0 || nowNs - this.#failedNs >= BigInt(Math.ceil(periodMs)) * NS_PER_MS;
    if (isAnother) this.#failedNs = nowNs;
    return isAnother;
  }

  stalled(): Stalled | null {
    const { kind, ns } = this.#state;
    const forMs = Number((this.#timer.monotonicNs() - ns) / NS_PER_MS);
    if (kind === "waiting" || forMs <= 0) return null;
    return { kind: kind === "working" ? "working" : "overdue", forMs };
  }

  #in(ms: number): bigint {
    return this.#timer.monotonicNs() + BigInt(Math.ceil(ms)) * NS_PER_MS;
  }
}

/** The engine of one loop: every answer, and every intended wait, counts as progress of this loop only. */
export function noting(engine: Engine, progress: LoopProgress): Engine {
  const answered = <T extends object>(port: T): T => notingAnswers(port, () => progress.works());
  const { observe, timer } = engine;
  const writer = answered(engine.writer);
  return {
    ...engine,
    observe: { ...observe, runtime: answered(observe.runtime), disk: answered(observe.disk) },
    writer: {
      removeImage: (id) => writer.removeImage(id),
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

/** A refusal is an answer too; a missing answer is not. */
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
