/** `crigc plan`: what `gc` would do now, and why each thing is kept or removed. */

import { printedJson } from "../../report/document/json.ts";
import { planDocument } from "../../report/document/plan.ts";
import { planTable } from "../../report/table/plan.ts";
import { type Command, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { planExit } from "../pass-exit.ts";
import { planNode } from "../read/node-plan.ts";
import { PARTS_OPTIONS, partsOf, purposeOf } from "../read/parts.ts";

export const plan: Command = {
  name: "plan",
  summary: "what gc would do now and why each thing is kept or removed",
  doc: "Shows the candidates in the order of removal, the target and the estimated stop. gc removes a prefix of that order, its length by measurement, and nothing outside it. Changes nothing. With --snapshot the plan is made from a recorded node, without any runtime.",
  operands: [],
  options: [
    ...PARTS_OPTIONS,
    {
      name: "snapshot",
      placeholder: "FILE",
      completes: "file",
      help: "plan from this file of crigc snapshot, offline",
    },
  ],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const prepared = await planNode(context, {
      purpose: purposeOf(invocation),
      parts: partsOf(invocation),
      snapshotFile: textOf(invocation, "snapshot"),
    });
    const { snapshot } = prepared;
    const report = {
      plan: prepared.plan,
      runtime: snapshot.runtime,
      observedAt: snapshot.observedAt,
    };
    context.stdout(
      invocation.output === "json"
        ? printedJson(planDocument(report))
        : planTable(report, context.screen),
    );
    return planExit(prepared.plan) ?? exit.done;
  },
};
