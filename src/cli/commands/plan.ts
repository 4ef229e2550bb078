/** `crigc plan`: what `gc` would do now, and why each thing is kept or removed. */

import { parseDuration } from "../../config/duration.ts";
import { quoted } from "../../config/value.ts";
import { ConfigError } from "../../model/errors.ts";
import type { Duration } from "../../model/time.ts";
import { printedJson } from "../../report/document/json.ts";
import { planDocument } from "../../report/document/plan.ts";
import { planTable } from "../../report/table/plan.ts";
import { ALL_OPTION, type Command, type Invocation, screenFor, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { planExit } from "../pass-exit.ts";
import { planNode, SNAPSHOT } from "../read/node-plan.ts";
import { forced, selectedBy, SELECTION_OPTIONS } from "../read/selection.ts";

export const plan: Command = {
  name: "plan",
  summary: "what gc would do now and why each thing is kept or removed",
  doc: "Shows the candidates in the order of removal, the target and the estimated stop. gc removes a prefix of that order, its length by measurement, and nothing outside it. Changes nothing. With --snapshot the plan is made from a recorded node, without any runtime.",
  operands: [],
  options: [
    ...SELECTION_OPTIONS,
    ALL_OPTION,
    {
      name: "assume-seen",
      placeholder: "DURATION",
      help: "plan as if every image had been first seen this much earlier",
    },
    SNAPSHOT,
  ],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const prepared = await planNode(context, {
      ...selectedBy(invocation),
      config: forced(context.config, invocation),
      assumeSeen: assumedSpan(invocation),
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
        : planTable(report, screenFor(context, invocation)),
    );
    return planExit(prepared.plan) ?? exit.done;
  },
};

function assumedSpan(invocation: Invocation): Duration | null {
  const text = textOf(invocation, "assume-seen");
  const span = text === null ? null : parseDuration(text);
  if (text === null || (span !== null && span >= 0n)) return span;
  const message = `invalid duration ${quoted(text)}: use 90s, 15m, 24h or 7d`;
  throw new ConfigError([{ source: "--assume-seen", text, message }]);
}
