/** `crigc uninstall`: takes out again what `install` put in place. */
import { installed } from "../install/paths.ts";
import { stepWords } from "../install/step.ts";
import { uninstall as uninstallFrom } from "../install/uninstall.ts";
import { clean } from "../report/terminal.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";
import { sayPlanned } from "./install.ts";
import { ROOT_OPTION, rootOf } from "./root-option.ts";
import { has } from "./words.ts";

export const uninstall: Command = {
  name: "uninstall",
  summary: "take out what install put in place",
  doc: "Stops the service where it runs, and removes service and executable. Configuration, keep rules and what was remembered stay, but for --purge, which leaves the tree as it was. --dry-run says what would be done.",
  operands: [],
  options: [
    ROOT_OPTION,
    {
      name: "purge",
      placeholder: null,
      help: "configuration, keep rules, ledger and history too",
    },
  ],
  json: false,
  readOnly: false,
  run: async (context, invocation) => {
    const { dryRun } = context;
    const root = rootOf(invocation);
    const steps = await uninstallFrom({ root, purge: has(invocation, "purge"), dryRun }, (step) =>
      context.stdout(`${clean(stepWords(step))}\n`),
    );
    if (steps === null)
      context.stdout(`nothing to remove: ${installed.manifest} records no installation\n`);
    else if (dryRun) sayPlanned(context, steps);
    return exit.done;
  },
};
