/** `crigc gc`: one pass now, a report, then the exit. */

import { Announcer } from "../loop/announcer.ts";
import { runPass } from "../loop/pass.ts";
import { toMs } from "../model/time.ts";
import { gcDocument } from "../report/gc-document.ts";
import { gcTable } from "../report/gc-table.ts";
import { printedJson } from "../report/json.ts";
import { clean } from "../report/terminal.ts";
import type { Command } from "./command.ts";
import { PARTS_OPTIONS, partsOf, purposeOf } from "./parts.ts";
import { passExit } from "./pass-exit.ts";

export const gc: Command = {
  name: "gc",
  summary: "one pass now: containers, sandboxes, logs, then images; a report, then exit",
  doc: "Waits for a pass that another process runs, for as long as --runtime-request-timeout. The maximum age of images counts watched time, which only the agent gathers steadily: gc alone adds at most twice the detection period each time it runs.",
  operands: [],
  options: PARTS_OPTIONS,
  json: true,
  run: async (context, invocation) => {
    const { config } = context;
    if (config.limits.images.maximumAge > 0n && config.compat === "kubelet") {
      context.stderr(
        "crigc: the maximum age of images has no effect here: as with the kubelet it needs an agent that has run for as long\n",
      );
    } else if (config.limits.images.maximumAge > 0n) {
      context.stderr(
        "crigc: the maximum age of images counts watched time, which needs the agent: gc alone adds little of it\n",
      );
    }
    const collector = await context.open.collector(config, context.signal);
    try {
      for (const notice of collector.notices) context.stderr(`crigc: ${clean(notice)}\n`);
      const parts = partsOf(invocation);
      const end = await runPass(
        collector.engine,
        {
          kind: "gc",
          purpose: purposeOf(invocation),
          ...parts,
          dryRun: config.dryRun,
          lockWaitMs: toMs(config.requestTimeout),
          now: () => collector.engine.observe.host.clocks().wall,
          random: () => Math.floor(Math.random() * 2 ** 24),
          announcer: new Announcer(collector.engine.journal),
          starting: (candidate, meter) => collector.starting(candidate, meter),
        },
        context.signal,
      );
      const { pass } = end;
      context.stdout(
        invocation.output === "json"
          ? printedJson(gcDocument(pass))
          : gcTable(pass, context.screen),
      );
      return passExit(pass, end);
    } finally {
      await collector.close();
    }
  },
};
