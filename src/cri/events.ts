/** Container events: hints between two lists that an image is in use. They never replace a list. */
import { RuntimeError } from "../model/errors.ts";
import { type ContainerId, containerId } from "../model/ids.ts";
import type { Channel } from "./channel.ts";
import { imagesOf } from "./decode.ts";
import type { ContainerEventMessage } from "./messages.ts";
import { MalformedError } from "./wire.ts";

export type ContainerEventKind = "created" | "started" | "stopped" | "deleted";

export interface ContainerEvent {
  readonly kind: ContainerEventKind;
  readonly containerId: ContainerId;
  /** Every reference by which the containers of the event's pod name an image, volumes included. */
  readonly images: readonly string[];
}

/**
 * Calls `onEvent` until `signal` aborts or the runtime ends the stream, then resolves; at once if the runtime has no
 * events. Throws `RuntimeError` if the connection breaks.
 */
export async function watchContainerEvents(
  runtime: Channel,
  onEvent: (event: ContainerEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    await runtime.stream("GetContainerEvents", {
      signal,
      endless: true,
      onItem: (message) => onEvent(decodeEvent(message)),
    });
  } catch (thrown) {
    const isQuiet =
      thrown instanceof RuntimeError &&
      (thrown.kind === "unimplemented" || thrown.kind === "cancelled");
    if (!isQuiet) throw thrown;
  }
}

const kinds: readonly ContainerEventKind[] = ["created", "started", "stopped", "deleted"];

function decodeEvent(message: ContainerEventMessage): ContainerEvent {
  const kind = kinds[message.container_event_type];
  if (kind === undefined)
    throw new MalformedError(`an event is of type ${message.container_event_type}`);
  return {
    kind,
    containerId: containerId(message.container_id),
    images: [...new Set(message.containers_statuses.flatMap(imagesOf))],
  };
}
