/** Passes each event to the event hook, if one is configured. */

import { EventHook } from "../host/process/hook.ts";
import type { Event } from "../model/pass.ts";
import { document, toJson } from "../report/document/json.ts";
import { eventJson } from "../report/document/snapshot.ts";

export interface EventCaller {
  /** Returns at once; what goes wrong with the executable is told of and changes nothing else. */
  call(event: Event): void;
  /** Resolves when the calls that were begun are through, each within its time. */
  close(): Promise<void>;
}

/** `executable` is read for each event, so that a reload applies to the next one; `null`: none. */
export function eventCaller(
  executable: () => string | null,
  failed: (message: string) => void,
): EventCaller {
  const hook = new EventHook(failed);
  return {
    call: (event) => {
      const path = executable();
      if (path !== null) hook.send(path, `${toJson(document("Event", eventJson(event)))}\n`);
    },
    close: () => hook.close(),
  };
}
