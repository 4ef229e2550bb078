/** `crigc run` and `crigc status`: run the agent, and show the running one. */

import { screenQuery } from "../../agent/control.ts";
import type { Config } from "../../config/config.ts";
import { ConfigError, HostError } from "../../model/errors.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext } from "../command.ts";
import { exit } from "../exit.ts";

export const run = command({
  name: "run",
  summary: "run the agent until it is stopped",
  doc: "Refreshes the image list every 30 s, runs image detection and image GC every 5 min and container GC every minute, and checks disk pressure every 10 s, more often near a threshold; flags set the periods. SIGHUP reloads the configuration if it is valid; nothing else does. SIGTERM finishes the removal in flight, abandons a pending stop, and exits. A second agent for the same runtime exits 6.",
  readOnly: false,
  reloads: true,
  // The agent logs the warnings of its configuration itself.
  run: ({ open, read, signal }) => open.agent({ first: read(), read, signal }),
});

export const status = command({
  name: "status",
  summary: "show the running agent: thresholds, passes, filesystems, errors",
  doc: "Reads the control socket in the run directory; needs no runtime. Forecasts when each filesystem reaches the high threshold and when it is full, if the history shows a clear trend. Exits 8 if no agent answers.",
  json: true,
  readOnly: true,
  run: async (context) => {
    const path =
      context.output === "json" ? "/status" : `/status.txt?${screenQuery(context.screen)}`;
    try {
      context.stdout(await context.open.askAgent(configToAsk(context), path));
      return exit.done;
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "http") throw thrown;
      context.stderr(`crigc: ${clean(thrown.message)}\n`);
      return exit.unknown;
    }
  },
});

/**
 * Only the run directory is needed. The agent does not run with a file that is broken now, and that is
 * when its status is needed: then no file counts.
 */
function configToAsk(context: CommandContext): Config {
  try {
    return context.config;
  } catch (thrown) {
    const isOfFlag = (source: string): boolean => source.startsWith("-");
    if (!(thrown instanceof ConfigError) || thrown.issues.some((it) => isOfFlag(it.source)))
      throw thrown;
    const what = clean(thrown.message.replaceAll("\n", "; "));
    context.stderr(`crigc: invalid configuration; querying the agent anyway: ${what}\n`);
    return context.alone("runDir");
  }
}
