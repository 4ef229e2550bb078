/** A container runtime, as three separate parts: one reads it, one changes it, one watches it. */
import type { CallRecord, RuntimeReader, RuntimeWriter } from "../model/ports.ts";
import { type Duration, toMs } from "../model/time.ts";
import { openChannel } from "./channel.ts";
import { type ContainerEvent, watchContainerEvents } from "./events.ts";
import { makeReader } from "./reader.ts";
import { makeWriter } from "./writer.ts";

export interface RuntimeOptions {
  /** `unix:///…`, from `parseEndpoint`. */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  /** Default timeout of a call. */
  readonly requestTimeout: Duration;
  /** Receives every finished call, for metrics. */
  readonly onCall?: (call: CallRecord) => void;
}

export interface Runtime {
  readonly reader: RuntimeReader;
  readonly writer: RuntimeWriter;
  /** Resolves when `signal` aborts, when the runtime ends the stream, or at once if the runtime has no events. */
  watchEvents(onEvent: (event: ContainerEvent) => void, signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Connects with the first call, and again when a call finds the connection broken. Never retries a call. */
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
