/** `crigc version`: what was built, from which commit. */
import { printedJson } from "../report/json.ts";
import type { Command } from "./command.ts";
import type { Build } from "./context.ts";
import { exit } from "./exit.ts";

export const version: Command = {
  name: "version",
  summary: "the version and the commit it was built from",
  doc: "Needs no configuration and no runtime.",
  operands: [],
  options: [],
  json: true,
  run: async (context, { output }) => {
    context.stdout(versionAnswer(context.build, output));
    return exit.done;
  },
};

export function versionAnswer(build: Build, output: "table" | "json"): string {
  const { version: number, commit } = build;
  if (output === "json")
    return printedJson({ version: number, commit: commit === "" ? null : commit });
  return commit === "" ? `crigc ${number}\n` : `crigc ${number} (${commit})\n`;
}
