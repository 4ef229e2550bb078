/** Passes each event to the event hook, if one is configured. */

import { EventHook } from "../host/process/hook.ts";
import type { Event } from "../model/pass.ts";
import { document, toJson } from "../report/document/json.ts";
import { eventJson } from "../report/document/snapshot.ts";

/**
 * `executable` is read for each event, so that a reload applies to the next one; `null`: none. A failing executable is
 * reported and changes nothing else. `close` resolves when the calls that began have ended, each within its time.
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
