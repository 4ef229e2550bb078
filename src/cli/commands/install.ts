/**
 * `crigc install` and `crigc uninstall`: install or remove executable, manual page, completions, service, configuration and
 * keep directory.
 */

import { install as installInto, uninstall as uninstallFrom } from "../../install/install.ts";
import {
  DEFAULT_BIN_DIRECTORY,
  type Init,
  inits,
  installed,
  isInit,
} from "../../install/layout.ts";
import { type Step, stepWords } from "../../install/tree-plan.ts";
import { usageError } from "../../model/errors.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, has, type Invocation, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { manualPage } from "../help/man.ts";
import { completionScripts } from "./itself.ts";

const ROOT_OPTION = option("root DIR", "file tree of a node image [this system]", {
  completes: "directory",
});

export const install = command({
  name: "install",
  summary: "install the executable, service, configuration and keep directory",
  doc: "Also adds the manual page and completions, and enables the systemd or OpenRC service. Starts nothing without --start; a new executable restarts a running agent. An upgrade keeps configuration, keep rules, ledger and history; installing the same version again changes nothing. With --root it installs into the file tree of a node image and touches nothing outside it. --dry-run lists the steps.",
  options: [
    ROOT_OPTION,
    option(
      "bin-dir DIR",
      `directory for the executable [as before, else ${DEFAULT_BIN_DIRECTORY}]`,
      {
        completes: "directory",
      },
    ),
    option("executable FILE", "executable to install, such as for another processor [this one]", {
      completes: "file",
    }),
    option(
      "init NAME",
      "init system: systemd, openrc, or none for no service [as before, else detected]",
      {
        choices: inits,
      },
    ),
    option("baseline", "keep the images present at the first start"),
    option("start", "also start the agent"),
  ],
  readOnly: false,
  run: async (context) => {
    const { dryRun } = context;
    const steps = await installInto(
      {
        version: context.build.version,
        root: rootOf(context),
        from: textOf(context, "executable") ?? SELF,
        binDirectory: pathOf(context, "bin-dir"),
        init: initOf(context),
        shellTexts: { man: manualPage(context.commands, context.build), ...completionScripts },
        baseline: has(context, "baseline"),
        start: has(context, "start"),
        dryRun,
      },
      (step) => context.stdout(`${clean(stepWords(step))}\n`),
    );
    if (dryRun) printPlanned(context, steps);
    else if (steps.length === 0) context.stdout("already installed; nothing to do\n");
    return exit.done;
  },
});

const SELF = "/proc/self/exe";

function initOf(invocation: Invocation): Init | null {
  const text = textOf(invocation, "init");
  return isInit(text) ? text : null;
}

function printPlanned(context: CommandContext, steps: readonly Step[]): void {
  if (steps.length === 0) context.stdout("nothing to do\n");
  for (const step of steps) context.stdout(`would ${clean(stepWords(step))}\n`);
}

export const uninstall = command({
  name: "uninstall",
  summary: "remove the executable, service, manual page and completions",
  doc: "Stops the service first. --dry-run lists the steps.",
  options: [
    ROOT_OPTION,
    option("purge", "also remove configuration, keep rules, ledger and history"),
  ],
  readOnly: false,
  run: async (context) => {
    const { dryRun } = context;
    const root = rootOf(context);
    const steps = await uninstallFrom({ root, purge: has(context, "purge"), dryRun }, (step) =>
      context.stdout(`${clean(stepWords(step))}\n`),
    );
    if (steps === null)
      context.stdout(
        `nothing to remove: ${installed.manifest}, which crigc install writes, not found\n`,
      );
    else if (dryRun) printPlanned(context, steps);
    return exit.done;
  },
});

/** "/" is the running system. Relative paths are below the working directory. */
function rootOf(invocation: Invocation): string {
  const text = textOf(invocation, "root");
  if (text === null) return "/";
  if (text === "") throw bad("root", text, "is not a directory; use the file tree of a node image");
  return text.replace(/(?!^)\/+$/, "");
}

/** An absolute path inside the tree, in its shortest form; `null`: not given. */
export function pathOf(invocation: Invocation, name: string): string | null {
  const text = textOf(invocation, name);
  if (text === null) return null;
  const path = text.replace(/(?!^)\/+$/, "");
  // Unit files split at blanks, and expand percent and dollar signs.
  if (/^(\/[\w.+@-]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path)) return path;
  throw bad(
    name,
    text,
    "is not a valid path: use an absolute path of letters, digits and . _ + @ -",
  );
}

export const bad = (name: string, text: string, message: string) =>
  usageError(`--${name}`, text, `${JSON.stringify(text.slice(0, 60))} ${message}`);
