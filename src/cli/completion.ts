/** `crigc completion`: a script for the shell, written from the tables. */
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";
import { bashScript } from "./shell/bash.ts";
import { fishScript } from "./shell/fish.ts";
import { completionTable } from "./shell/table.ts";
import { zshScript } from "./shell/zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
const SHELLS = Object.keys(SCRIPTS);

const isShell = (name: string): name is keyof typeof SCRIPTS => Object.hasOwn(SCRIPTS, name);

export const completion: Command = {
  name: "completion",
  summary: "a completion script for bash, zsh or fish",
  doc: "Write it where the shell looks: /etc/bash_completion.d/crigc, a directory of zsh's fpath as _crigc, or /etc/fish/completions/crigc.fish.",
  operands: [{ name: "SHELL", required: true, choices: SHELLS, help: "the shell" }],
  options: [],
  json: false,
  readOnly: true,
  run: async (context, { operands }) => {
    const shell = operands[0] ?? "";
    if (isShell(shell)) context.stdout(SCRIPTS[shell](completionTable(context.commands)));
    return exit.done;
  },
};
