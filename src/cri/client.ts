/** A container runtime: what reads it, what changes it and what watches it, as three things that are handed out apart. */
import type { CallRecord, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
import { type Duration, toMs } from "../model/time.ts";
import { openChannel } from "./channel.ts";
import { type ContainerEvent, watchContainerEvents } from "./events.ts";
import { makeReader } from "./reader.ts";
import { makeWriter } from "./writer.ts";

export interface RuntimeOptions {
  /** `unix:///…`, as `parseEndpoint` gives it. */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  /** Deadline of every call. */
  readonly requestTimeout: Duration;
  /** Told of every call that has ended, for metrics. */
  readonly onCall?: (call: CallRecord) => void;
}

export interface Runtime {
  readonly reader: RuntimeReader;
  readonly writer: RuntimeWriter;
  /** Resolves when `signal` aborts, when the runtime ends the stream, and at once where it has no events. */
  watchEvents(onEvent: (event: ContainerEvent) => void, signal: AbortSignal): Promise<void>;
  close(): void;
}

/**
 * Connects with the first call, and again by itself after the runtime was away: at most 3 s after it is back. No call
 * is ever tried twice.
 */
export function openRuntime(options: RuntimeOptions): Runtime {
  const { endpoint, imageEndpoint, requestTimeout, onCall = () => undefined } = options;
  const requestTimeoutMs = toMs(requestTimeout);
  const runtime = openChannel({ endpoint, requestTimeoutMs, onCall });
  const image =
    imageEndpoint === endpoint
      ? runtime
      : openChannel({ endpoint: imageEndpoint, requestTimeoutMs, onCall });
  return {
    reader: makeReader({ runtime, image, endpoint, imageEndpoint }),
    writer: makeWriter(runtime, image),
    watchEvents: async (onEvent, signal) => watchContainerEvents(runtime, onEvent, signal),
    close: () => {
      runtime.close();
      if (image !== runtime) image.close();
    },
  };
}
