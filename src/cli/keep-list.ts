/** `crigc keep list`: the keep rules in force and what each of them keeps on this node. */

import { printedJson } from "../report/document/json.ts";
import { keepRulesDocument, keepRulesTable } from "../report/table/keep.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";
import { matchedRules } from "./keep-rules.ts";
import { planNode } from "./node-plan.ts";
import { textOf } from "./words.ts";

export const keepList: Command = {
  name: "keep list",
  summary: "the keep rules in force and what each of them matches on this node",
  doc: "A rule that matches nothing may be misspelt, so it is counted. Images that are kept without a rule follow: what the runtime pins, and what is known as the sandbox image, by the runtime, by configuration or by built-in patterns. Exit 2 where the rules are invalid, so that no image is removed.",
  operands: [],
  options: [
    {
      name: "snapshot",
      placeholder: "FILE",
      completes: "file",
      help: "the rules of this file of crigc snapshot, offline",
    },
  ],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const { snapshot } = await planNode(context, {
      purpose: { kind: "periodic" },
      parts: { containers: "none", images: true },
      snapshotFile: textOf(invocation, "snapshot"),
    });
    const report = matchedRules(snapshot, context.config.limits.images);
    context.stdout(
      invocation.output === "json"
        ? printedJson(keepRulesDocument(report))
        : keepRulesTable(report, context.screen),
    );
    return report.problems.length === 0 ? exit.done : exit.usage;
  },
};
