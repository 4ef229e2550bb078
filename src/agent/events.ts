/** The runtime's events, which report uses of images, and the agent's own, which go to the event hook. */

import type { ContainerEvent, Runtime } from "../cri/client.ts";
import type { EventFeed, EventSource } from "../gc/ports.ts";
import { type ContainerId, podUid, sandboxId } from "../model/ids.ts";
import type { Event } from "../model/pass.ts";
import type { Container } from "../model/snapshot.ts";
import { instant } from "../model/time.ts";
import { EventHook } from "../node/event-hook.ts";
import { document, eventJson, toJson } from "../report/document.ts";

/** Events kept per pass; older ones are already in the lists. */
const ANNOUNCED_MAX = 10_000;

interface Announced {
  readonly atNs: bigint;
  readonly id: ContainerId;
  readonly containers: readonly Container[];
}

export function eventSource(
  runtime: Pick<Runtime, "watchEvents">,
  monotonicNs: () => bigint,
): EventSource {
  return {
    listen: (signal): EventFeed => {
      let announced: Announced[] = [];
      const note = (event: ContainerEvent): void => {
        if (event.kind === "deleted") {
          // A runtime replays old events first: containers removed since then use nothing.
          announced = announced.filter((one) => one.id !== event.containerId);
          return;
        }
        const containers = containersOf(event);
        announced.push({ atNs: monotonicNs(), id: event.containerId, containers });
        if (announced.length > ANNOUNCED_MAX) announced = announced.slice(-ANNOUNCED_MAX / 2);
      };
      // Without events, or after the stream breaks, the lists still protect.
      void runtime.watchEvents(note, signal).catch(() => undefined);
      return {
        announcedSince: (sinceNs) =>
          announced.filter((one) => one.atNs >= sinceNs).flatMap((one) => one.containers),
      };
    },
  };
}

/** One entry per reference in the event's containers, so that their images count as used. */
function containersOf(event: ContainerEvent): readonly Container[] {
  return event.images.map((reference) => ({
    id: event.containerId,
    sandboxId: sandboxId(""),
    name: "announced by an event",
    attempt: 0,
    podUid: podUid(""),
    podName: "",
    podNamespace: "",
    imageName: reference,
    imageRef: "",
    imageId: "",
    state: "created",
    createdAt: instant(0n),
  }));
}

/**
 * Reads `executable` for each event, so that a reload applies to the next one; `null`: none. A failing hook is
 * only reported. `close` resolves when the running calls have ended, each within its time limit.
 */
export function eventCaller(executable: () => string | null, failed: (message: string) => void) {
  const hook = new EventHook(failed);
  return {
    call: (event: Event): void => {
      const path = executable();
      if (path !== null) hook.send(path, `${toJson(document("Event", eventJson(event)))}\n`);
    },
    close: (): Promise<void> => hook.close(),
  };
}
