/** `crigc run`: the agent. */

import type { Command } from "../command.ts";

export const run: Command = {
  name: "run",
  summary: "the agent: watches the node and collects until it is stopped",
  doc: "Refreshes the image list every 30 s, detects what is in use and collects images every 5 min, collects containers every minute and looks at disk pressure every 10 s; all periods are configurable. SIGHUP or a changed file reloads the configuration if it is valid. SIGTERM finishes the removal in flight, gives up a stop that is awaited, and ends. A second agent for the same runtime is refused with exit 6.",
  operands: [],
  options: [],
  json: false,
  readOnly: false,
  run: (context) => {
    const look = context.look();
    // The agent says the warnings of its configuration itself, in its log.
    const first = { config: look.load(), look };
    return context.open.agent({ first, look: context.look, signal: context.signal });
  },
};
