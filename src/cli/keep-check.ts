/** `crigc keep check`: whether the keep rules can be read, by files and flags alone. */

import { counted } from "../report/bytes.ts";
import { printedJson } from "../report/document/json.ts";
import { keepRulesDocument, type KeepRulesReport } from "../report/table/keep.ts";
import { clean } from "../report/terminal.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";

export const keepCheck: Command = {
  name: "keep check",
  summary: "verify the keep rules: every file and line, and the flags",
  doc: "Reads what a pass would read, without any runtime, so it can stand in the pipeline that makes a node image. Exit 2 where something is wrong: then no image would be removed. Each problem names its file and line.",
  operands: [],
  options: [],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const { rules, problems } = await context.open.keepRules(context.config);
    const report: KeepRulesReport = {
      rules: rules.map((rule) => ({ rule, images: [] })),
      protections: [],
      problems,
      matched: false,
    };
    if (invocation.output === "json") context.stdout(printedJson(keepRulesDocument(report)));
    else if (problems.length === 0) context.stdout(`${verdict(report)}\n`);
    for (const { source, message } of problems)
      context.stderr(`crigc: ${clean(source)}: ${clean(message)}\n`);
    return problems.length === 0 ? exit.done : exit.usage;
  },
};

function verdict({ rules }: KeepRulesReport): string {
  if (rules.length === 0) return "There are no keep rules, and nothing is wrong.";
  const places = new Set(rules.map(({ rule }) => rule.source.replace(/:\d+$/, "")));
  const from = Array.from(places, (place) => clean(place));
  return `${counted(rules.length, "keep rule")} in ${from.join(", ")}: all of them are valid.`;
}
