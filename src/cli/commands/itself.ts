/** `crigc help`, `version`, `completion` and `print`: about crigc itself. */

import { deployFiles, homepage, licenses } from "../../install/deploy.ts";
import { usageError } from "../../model/errors.ts";
import { document } from "../../report/document.ts";
import { type Build, command, DOCUMENT, has, operand, option, print } from "../command.ts";
import bash from "../completion/bash.txt" with { type: "text" };
import fish from "../completion/fish.txt" with { type: "text" };
import zsh from "../completion/zsh.txt" with { type: "text" };
import { helpOn, manualPage } from "../help/help.ts";

export const help = command({
  name: "help",
  summary: "show help on a command or all flags, or the manual page",
  doc: "`crigc help flags` lists every flag; `crigc help manual` is for `man -l -`.",
  operands: [
    operand("[COMMAND...]", "a command, flags or manual", { proposals: ["flags", "manual"] }),
  ],
  run: async ({ stdout, commands, build, screen, operands }) => {
    const topic = operands.join(" ");
    stdout(topic === "manual" ? manualPage(commands, build) : helpOn(topic, commands, screen));
  },
});

/** They call crigc for the words. */
export const completionScripts = { bash, zsh, fish } as const;

const SCRIPTS: ReadonlyMap<string, string> = new Map(Object.entries(completionScripts));

export const completion = command({
  name: "completion",
  summary: "print a completion script for bash, zsh or fish",
  doc: "crigc install installs all three.",
  operands: [operand("SHELL", "shell to complete in", { choices: [...SCRIPTS.keys()] })],
  run: async ({ stdout, operands: [shell = ""] }) => {
    stdout(SCRIPTS.get(shell) ?? "");
  },
});

export const version = command({
  name: "version",
  summary: "print version, commit and project",
  doc: "Needs no configuration or runtime.",
  options: [option("licenses", "third-party components with their licences")],
  formats: DOCUMENT,
  run: async (context) => {
    const { version: number, commit } = context.build;
    if (!has(context, "licenses"))
      return print(context, {
        document: document("Version", { version: number, commit: commit || null, homepage }),
        table: () => versionText(context.build),
      });
    if (context.output !== "table")
      throw usageError("-o", context.output, "--licenses prints text only; leave -o out");
    return context.stdout(await licenses.text());
  },
});

const versionText = ({ version: number, commit }: Build): string =>
  `crigc ${number}${commit === "" ? "" : ` (${commit})`}\n${homepage}\n`;

const FILES: ReadonlyMap<string, string> = new Map(Object.entries(deployFiles));

export const printFile = command({
  name: "print",
  summary: "print a unit, manifest, alerting rules or configuration",
  doc: "The files that install writes, and those for other machines, complete and commented: save one and change it.",
  operands: [operand("NAME", "file to print", { choices: [...FILES.keys()] })],
  run: async ({ stdout, operands: [name = ""] }) => {
    stdout(FILES.get(name) ?? "");
  },
});
