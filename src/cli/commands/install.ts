/**
 * `crigc install` and `crigc uninstall`: install or remove executable, manual page, completions, service, configuration and
 * keep directory.
 */

import {
  install as installInto,
  OWN_EXECUTABLE,
  uninstall as uninstallFrom,
} from "../../install/install.ts";
import {
  DEFAULT_BIN_DIRECTORY,
  type Init,
  inits,
  installed,
  isInit,
} from "../../install/layout.ts";
import { type Step, stepWords } from "../../install/tree-plan.ts";
import { command, type CommandContext, has, type Invocation, option, textOf } from "../command.ts";
import { manualPage } from "../help/help.ts";
import { optionError, valueOf, type ValueType } from "../values.ts";
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
  changes: true,
  run: async (context) => {
    const { dryRun } = context;
    const settings = context.flags.filter(({ name }) => name !== "dryRun");
    if (settings.length > 0)
      context.note(
        `install writes no settings: add ${settings.map(({ written }) => written).join(", ")} to ${installed.config}`,
      );
    const steps = await installInto(
      {
        version: context.build.version,
        root: rootOf(context),
        from: textOf(context, "executable") ?? OWN_EXECUTABLE,
        binDirectory: valueOf(context, "bin-dir", PATH),
        init: initOf(context),
        shellTexts: { man: manualPage(context.commands, context.build), ...completionScripts },
        baseline: has(context, "baseline"),
        start: has(context, "start"),
        dryRun,
      },
      (step) => context.say(stepWords(step)),
    );
    if (dryRun) sayPlanned(context, steps);
    else if (steps.length === 0) context.say("already installed; nothing to do");
  },
});

function initOf(invocation: Invocation): Init | null {
  const text = textOf(invocation, "init");
  return isInit(text) ? text : null;
}

function sayPlanned(context: CommandContext, steps: readonly Step[]): void {
  if (steps.length === 0) context.say("nothing to do");
  for (const step of steps) context.say(`would ${stepWords(step)}`);
}

export const uninstall = command({
  name: "uninstall",
  summary: "remove the executable, service, manual page and completions",
  doc: "Stops the service first. --dry-run lists the steps.",
  options: [
    ROOT_OPTION,
    option("purge", "also remove configuration, keep rules, ledger and history"),
  ],
  changes: true,
  run: async (context) => {
    const { dryRun } = context;
    const root = rootOf(context);
    const steps = await uninstallFrom({ root, purge: has(context, "purge"), dryRun }, (step) =>
      context.say(stepWords(step)),
    );
    if (steps === null)
      context.say(
        `nothing to remove: ${installed.manifest}, which crigc install writes, not found`,
      );
    else if (dryRun) sayPlanned(context, steps);
  },
});

/** "/" is the running system. Relative paths are below the working directory. */
function rootOf(invocation: Invocation): string {
  const text = textOf(invocation, "root");
  if (text === null) return "/";
  if (text === "")
    throw optionError("root", text, "is not a directory; use the file tree of a node image");
  return text.replace(/(?!^)\/+$/, "");
}

/** An absolute path inside the tree. */
export const PATH: ValueType<string> = {
  what: "path",
  use: "an absolute path of letters, digits and . _ + @ -",
  read: (text) => {
    const path = text.replace(/(?!^)\/+$/, "");
    // Unit files split at blanks, and expand percent and dollar signs.
    return /^(\/[\w.+@-]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path) ? path : null;
  },
};
