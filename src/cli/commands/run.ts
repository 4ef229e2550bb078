/** `crigc run`: the agent. */

import { command } from "../command.ts";

export const run = command({
  name: "run",
  summary: "run the agent until it is stopped",
  doc: "Refreshes the image list every 30 s, runs image detection and image GC every 5 min and container GC every minute, and checks disk pressure every 10 s, more often near a threshold; flags set the periods. SIGHUP reloads the configuration if it is valid; nothing else does. SIGTERM finishes the removal in flight, abandons a pending stop, and exits. A second agent for the same runtime exits 6.",
  readOnly: false,
  reloads: true,
  run: (context) => {
    const { read, signal } = context;
    // The agent logs the warnings of its configuration itself.
    return context.open.agent({ first: read(), read, signal });
  },
});
