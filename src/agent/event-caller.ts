/** Passes each event to the event hook, if one is configured. */

import type { Event } from "../model/pass.ts";
import { EventHook } from "../node/event-hook.ts";
import { document, eventJson, toJson } from "../report/document.ts";

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
