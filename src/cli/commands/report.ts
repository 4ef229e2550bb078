/** `crigc report`: write the history and the current node as one self-contained HTML page. */

import type { Prepared } from "../../gc/prepare.ts";
import { HostError, messageOf, RuntimeError, usageError } from "../../model/errors.ts";
import { hours, type Instant, instant } from "../../model/time.ts";
import { htmlReport } from "../../report/html.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, type Invocation, option, textOf } from "../command.ts";
import { exit, exitOf } from "../exit.ts";
import { imageUsageReport, planNode } from "../node-plan.ts";
import { writeForCaller } from "../relay.ts";
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
    const path = pathOf(context);
    const to = context.open.now();
    const from = instant(to - PERIOD);
    const node = await nodeNow(context);
    const page = pageOf(context, { from, to, node });
    if (path === "-") context.stdout(page);
    else writeForCaller(context.open, { path, dryRun: context.dryRun, say: context.stdout }, page);
    if ("prepared" in node) return exit.done;
    context.note(`the report does not include the node: ${messageOf(node.failure)}`);
    return exitOf(node.failure) ?? exit.internal;
  },
});

function pathOf(invocation: Invocation): string {
  const path = textOf(invocation, "html");
  if (path !== null) return path;
  throw usageError("crigc report", "", "missing --html FILE");
}

type NodeNow = { readonly prepared: Prepared } | { readonly failure: unknown };

async function nodeNow(context: CommandContext): Promise<NodeNow> {
  try {
    return { prepared: await planNode(context, { allLayers: true }) };
  } catch (thrown) {
    // A report that is interrupted must not replace the one of before.
    const isOfNode = thrown instanceof RuntimeError || thrown instanceof HostError;
    if (!isOfNode || context.signal.aborted) throw thrown;
    return { failure: thrown };
  }
}

function pageOf(
  context: CommandContext,
  about: { readonly from: Instant; readonly to: Instant; readonly node: NodeNow },
): string {
  const { from, to, node } = about;
  const store = context.open.state(context.config);
  const { report: history } = readHistory(store, { since: from, limit: PASSES_MAX });
  return htmlReport({
    node: clean(context.open.hostName(context.env)),
    version: context.build.version,
    period: { from, to },
    history,
    runtime: "prepared" in node ? node.prepared.snapshot.runtime : null,
    plan: "prepared" in node ? node.prepared.plan : null,
    usage: "prepared" in node ? imageUsageReport(node.prepared) : null,
    planError: "prepared" in node ? null : messageOf(node.failure),
  });
}
