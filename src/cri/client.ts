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
  /** Called when a list has arrived, before it is read. */
  readonly onList?: () => void;
  /** Called for each list entry that is decoded: many take time, and leave garbage before their call has ended. */
  readonly onNewEntry?: () => void;
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
  const {
    endpoint,
    imageEndpoint,
    requestTimeout,
    onList,
    onNewEntry,
    onCall = () => undefined,
  } = options;
  const requestTimeoutMs = toMs(requestTimeout);
  const runtime = openChannel({ endpoint, requestTimeoutMs, onCall, onList });
  const image =
    imageEndpoint === endpoint
      ? runtime
      : openChannel({ endpoint: imageEndpoint, requestTimeoutMs, onCall, onList });
  return {
    reader: makeReader({ runtime, image, endpoint, imageEndpoint, onNewEntry }),
    writer: makeWriter(runtime, image),
    watchEvents: async (onEvent, signal) => watchContainerEvents(runtime, onEvent, signal),
    close: () => {
      runtime.close();
      if (image !== runtime) image.close();
    },
  };
}
