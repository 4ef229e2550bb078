/** Calls of a runtime that may be slow or silent: how many at once and how fast, and when to stop. */

import { RuntimeError, wasUnanswered } from "../model/errors.ts";
import type { RuntimeReader, RuntimeWriter, Timer } from "../model/ports.ts";
import { mapBounded } from "../model/values.ts";

/** Concurrent calls for details: enough to hide a socket's latency, too few to crowd out a kubelet. */
export const CALLS_AT_ONCE = 16;

/** After this many calls without an answer no more are made: each would take its whole deadline. */
export const UNANSWERED_MAX = 2;

/** Asks about each item, side by side, until too many calls time out. Rejects only if `signal` aborts. */
export async function askAll<T>(
  items: readonly T[],
  { signal, ask, failed = () => undefined }: Asking<T>,
): Promise<void> {
  let unanswered = 0;
  await mapBounded(items, CALLS_AT_ONCE, async (item) => {
    try {
      if (unanswered >= UNANSWERED_MAX)
        throw new Error(`not requested, because ${unanswered} other calls got no answer`);
      await ask(item);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      if (wasUnanswered(thrown)) unanswered += 1;
      failed(item, thrown);
    }
  });
}

interface Asking<T> {
  readonly signal: AbortSignal;
  readonly ask: (item: T) => Promise<void>;
  readonly failed?: (item: T, thrown: unknown) => void;
}

/** Timeout of a call about containers under pressure. */
const ANSWER_MS = 10_000;
/** Of a stop, which also gets its grace period. */
const STOP_MS_MAX = 30_000;

export interface ContainerCalls {
  readonly runtime: Pick<RuntimeReader, "containerDetail" | "sandboxDetail">;
  readonly writer: Omit<RuntimeWriter, "removeImage">;
}

/** Calls about containers with the short timeouts of pressure. The runtime may still finish one; a later pass sees the result. */
export function impatient({ runtime, writer }: ContainerCalls, timer: Timer): ContainerCalls {
  const within = async <T>(ms: number, call: Promise<T>): Promise<T> => {
    const [late, answered] = [Promise.withResolvers<never>(), new AbortController()];
    void timer.sleep(ms, answered.signal).then(() => {
      if (answered.signal.aborted) return;
      late.reject(
        new RuntimeError("deadline", `no answer within ${ms / 1000} s under disk pressure`),
      );
    });
    return Promise.race([call, late.promise]).finally(() => answered.abort());
  };
  const stopMs = (graceSeconds: number): number =>
    Math.min(graceSeconds * 1000 + ANSWER_MS, STOP_MS_MAX);
  return {
    runtime: {
      containerDetail: (id, signal) => within(ANSWER_MS, runtime.containerDetail(id, signal)),
      sandboxDetail: (id, signal) => within(ANSWER_MS, runtime.sandboxDetail(id, signal)),
    },
    writer: {
      ...writer,
      stopContainer: (id, grace, signal) =>
        within(stopMs(grace), writer.stopContainer(id, grace, signal)),
      removeContainer: (id) => within(ANSWER_MS, writer.removeContainer(id)),
      stopSandbox: (id, signal) => within(ANSWER_MS, writer.stopSandbox(id, signal)),
      removeSandbox: (id) => within(ANSWER_MS, writer.removeSandbox(id)),
    },
  };
}
