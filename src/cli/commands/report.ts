/** `crigc report`: write the history and the current node as one self-contained HTML page. */

import type { Prepared } from "../../gc/prepare.ts";
import { HostError, messageOf, RuntimeError, usageError } from "../../model/errors.ts";
import { hours, instant } from "../../model/time.ts";
import { htmlReport } from "../../report/html.ts";
import { clean } from "../../report/terminal.ts";
import { command, has, option } from "../command.ts";
import { exit, exitOf } from "../exit.ts";
import { imageUsageReport, planNode } from "../node-plan.ts";
import { readHistory } from "./history.ts";

const PERIOD = hours(24 * 7);
/** More make a page that no browser scrolls well. */
const PASSES_MAX = 500;

export const report = command({
  name: "report",
  summary: "write a self-contained HTML report of the node and its history",
  doc: "Shows what plan, df and history show, of the last 7 days (500 passes at most). If the node cannot be read, shows the history alone (exit 3).",
  options: [
    option("html FILE", "output file, or - for stdout", { completes: "file", required: true }),
  ],
  changes: true,
  inAgent: true,
  callerWrites: "html",
  run: async (context) => {
    if (!has(context, "html")) throw usageError("crigc report", "", "missing --html FILE");
    const { open } = context;
    const to = open.now();
    const from = instant(to - PERIOD);
    let node: Prepared | null = null;
    let failure: unknown = null;
    try {
      node = await planNode(context, { allLayers: true });
    } catch (thrown) {
      // A report that is interrupted must not replace the one of before.
      const isOfNode = thrown instanceof RuntimeError || thrown instanceof HostError;
      if (!isOfNode || context.signal.aborted) throw thrown;
      failure = thrown;
    }
    const store = open.state(context.config);
    const page = htmlReport({
      node: clean(open.hostName(context.env)),
      version: context.build.version,
      period: { from, to },
      history: readHistory(store, { since: from, limit: PASSES_MAX }).report,
      runtime: node?.snapshot.runtime ?? null,
      plan: node?.plan ?? null,
      usage: node && imageUsageReport(node),
      planError: node === null ? messageOf(failure) : null,
    });
    context.stdout(page);
    if (node !== null) return exit.done;
    context.note(`the report does not include the node: ${messageOf(failure)}`);
    return exitOf(failure) ?? exit.internal;
  },
});
