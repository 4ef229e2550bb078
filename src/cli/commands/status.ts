/** `crigc status`: show the running agent, over its control socket. */

import { screenQuery } from "../../agent/http/routes.ts";
import type { Config } from "../../config/config.ts";
import { ConfigError, HostError } from "../../model/errors.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext } from "../command.ts";
import { exit } from "../exit.ts";

export const status = command({
  name: "status",
  summary: "show the running agent: thresholds, passes, filesystems, errors",
  doc: "Reads the control socket in the run directory; needs no runtime. Forecasts when each filesystem reaches the high threshold and when it is full, if the history shows a clear trend. Exits 8 if no agent answers.",
  json: true,
  readOnly: true,
  run: async (context, { output }) => {
    const path = output === "json" ? "/status" : `/status.txt?${screenQuery(context.screen)}`;
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
    if (!(thrown instanceof ConfigError)) throw thrown;
    const alone = context.withoutFiles();
    const what = clean(thrown.message.replaceAll("\n", "; "));
    context.stderr(`crigc: invalid configuration; querying the agent anyway: ${what}\n`);
    return alone;
  }
}
