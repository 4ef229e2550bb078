/** `crigc status`: what the running agent says of itself, over its control socket. */

import { HostError } from "../model/errors.ts";
import { screenQuery } from "../report/http-routes.ts";
import { clean } from "../report/terminal.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";

export const status: Command = {
  name: "status",
  summary: "the running agent: thresholds in force, passes, filesystems, holds, errors",
  doc: "Asks over the control socket in the run directory, and needs no runtime. Exit 8 where no agent answers.",
  operands: [],
  options: [],
  json: true,
  run: async (context, { output }) => {
    const path = output === "json" ? "/status" : `/status.txt?${screenQuery(context.screen)}`;
    try {
      context.stdout(await context.open.askAgent(context.config, path));
      return exit.done;
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "http") throw thrown;
      context.stderr(`crigc: ${clean(thrown.message)}\n`);
      return exit.unknown;
    }
  },
};
