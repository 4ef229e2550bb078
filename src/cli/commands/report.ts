/** `crigc report`: write the history and the current node as one self-contained HTML page. */

import { usageError } from "../../model/errors.ts";
import { hours, instant } from "../../model/time.ts";
import { htmlReport } from "../../report/html.ts";
import { clean } from "../../report/terminal.ts";
import { command, has, option } from "../command.ts";
import { imageUsageReport, planNode } from "../node-plan.ts";
import { readHistory } from "./history.ts";

const PERIOD = hours(24 * 7);
/** More make a page that no browser scrolls well. */
const PASSES_MAX = 500;

export const report = command({
  name: "report",
  summary: "write a self-contained HTML report of the node and its history",
  doc: "Shows what plan, df and history show, of the last 7 days (500 passes at most).",
  options: [
    option("html FILE", "output file, or - for stdout", { completes: "files", required: true }),
  ],
  changes: true,
  inAgent: true,
  callerWrites: "html",
  run: async (context) => {
    if (!has(context, "html")) throw usageError("crigc report", "", "missing --html FILE");
    const { open } = context;
    const to = open.now();
    const from = instant(to - PERIOD);
    const node = await planNode(context, { allLayers: true });
    const store = open.state(context.config);
    const page = htmlReport({
      node: clean(open.hostName(context.env)),
      version: context.build.version,
      period: { from, to },
      history: readHistory(store.history(), { since: from, limit: PASSES_MAX }).report,
      runtime: node.snapshot.runtime,
      plan: node.plan,
      usage: imageUsageReport(node),
    });
    context.stdout(page);
  },
});
