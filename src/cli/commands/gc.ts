/** `crigc gc`: one pass now, a report, then the exit. */

import type { Config } from "../../config/config.ts";
import { Announcer } from "../../loop/announcer.ts";
import { runPass } from "../../loop/pass.ts";
import { toMs } from "../../model/time.ts";
import { gcDocument } from "../../report/document/gc.ts";
import { printedJson } from "../../report/document/json.ts";
import { gcTable } from "../../report/table/gc.ts";
import type { Command } from "../command.ts";
import { passExit } from "../pass-exit.ts";
import { PARTS_OPTIONS, partsOf, purposeOf } from "../read/parts.ts";

export const gc: Command = {
  name: "gc",
  summary: "one pass now: containers, sandboxes, logs, then images",
  doc: "Reports what it did, and exits. Waits for a pass that another process runs, for as long as --runtime-request-timeout. The maximum age of images counts watched time, which only the agent gathers steadily: gc alone adds at most twice the detection period each time it runs. For --boot-grace after a boot nothing is removed: exit 4 then where something was wanted, and the report says how long it lasts.",
  operands: [],
  options: PARTS_OPTIONS,
  json: true,
  readOnly: false,
  run: async (context, invocation) => {
    const { config } = context;
    const collector = await context.open.collector(config, context.signal);
    try {
      for (const notice of [...ageNotices(config), ...collector.notices])
        collector.log.warning(notice);
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

/** What a single pass does with a maximum age. */
function ageNotices({ limits, compat }: Config): readonly string[] {
  if (limits.images.maximumAge === 0n) return [];
  return compat === "kubelet"
    ? [
        "the maximum age of images has no effect here: as with the kubelet it needs an agent that has run for as long",
      ]
    : [
        "the maximum age of images counts watched time, which needs the agent: gc alone adds little of it",
      ];
}
