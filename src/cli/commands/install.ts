/** `crigc install` and `crigc uninstall`: put this executable, its service, configuration and keep directory in place, or take them away. */

import { install as installInto } from "../../install/install.ts";
import { type Init, inits, isInit } from "../../install/manifest.ts";
import { DEFAULT_BIN_DIRECTORY, installed } from "../../install/paths.ts";
import { type Step, stepWords } from "../../install/step.ts";
import { uninstall as uninstallFrom } from "../../install/uninstall.ts";
import { clean } from "../../report/terminal.ts";
import { type Command, type CommandContext, has, type Invocation, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { pathOf, ROOT_OPTION, rootOf } from "./root-option.ts";

export const install: Command = {
  name: "install",
  summary: "put executable, service, configuration and keep directory in place",
  doc: "Copies itself, and writes the service of systemd or OpenRC and enables it. Nothing is started unless --start asks for it; an agent that runs is started anew by a new executable. Configuration, keep rules and what was remembered stay as they are over an upgrade, and a second call changes nothing. With --root everything goes into the file tree of an image that is not running, by that tree's own links, and nothing outside it is touched. --dry-run says what would be done.",
  operands: [],
  options: [
    ROOT_OPTION,
    {
      name: "bin-dir",
      placeholder: "DIR",
      completes: "directory",
      help: `directory for the executable (default ${DEFAULT_BIN_DIRECTORY})`,
    },
    {
      name: "executable",
      placeholder: "FILE",
      completes: "file",
      help: "install this build instead of the running one, as for another processor",
    },
    {
      name: "init",
      placeholder: "NAME",
      choices: inits,
      help: "the init system, where it cannot be told from the tree; none: the start is left to you",
    },
    {
      name: "baseline",
      placeholder: null,
      help: "at the first start, before anything is collected, write the images that are there into the keep rules",
    },
    { name: "start", placeholder: null, help: "start the agent too, if the init system runs" },
  ],
  json: false,
  readOnly: false,
  run: async (context, invocation) => {
    const { dryRun } = context;
    const steps = await installInto(
      {
        version: context.build.version,
        root: rootOf(invocation),
        from: textOf(invocation, "executable") ?? SELF,
        binDirectory: pathOf(invocation, "bin-dir") ?? DEFAULT_BIN_DIRECTORY,
        init: initOf(invocation),
        baseline: has(invocation, "baseline"),
        start: has(invocation, "start"),
        dryRun,
      },
      (step) => context.stdout(`${clean(stepWords(step))}\n`),
    );
    if (dryRun) sayPlanned(context, steps);
    else if (steps.length === 0) context.stdout("everything is in place already\n");
    return exit.done;
  },
};

/** The kernel's name for the running executable. */
const SELF = "/proc/self/exe";

function initOf(invocation: Invocation): Init | null {
  const text = textOf(invocation, "init");
  return isInit(text) ? text : null;
}

export function sayPlanned(context: CommandContext, steps: readonly Step[]): void {
  if (steps.length === 0) context.stdout("there would be nothing to do\n");
  for (const step of steps) context.stdout(`would ${clean(stepWords(step))}\n`);
}

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
