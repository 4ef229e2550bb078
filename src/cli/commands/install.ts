/** `crigc install` and `crigc uninstall`: executable, service, configuration, keep directory, manual page, completions. */

import {
  CONFIG,
  install as installInto,
  OWN_EXECUTABLE,
  type ShellTexts,
  uninstall as uninstallFrom,
} from "../../install/install.ts";
import { document } from "../../report/document.ts";
import {
  command,
  type CommandContext,
  DOCUMENT,
  has,
  type Invocation,
  option,
  print,
  textOf,
} from "../command.ts";
import { manualPage } from "../help/help.ts";
import { completionScripts } from "./itself.ts";

const ROOT_OPTION = option("root DIR", "file tree of a node image [this system]", {
  completes: "directories",
});

export const install = command({
  name: "install",
  summary: "install executable, service, configuration, keep directory",
  doc: "Also adds the manual page and completions, and enables the systemd or OpenRC service. Starts nothing without --start; a new executable restarts a running agent. An upgrade keeps configuration, keep rules, ledger and history; installing the same version again changes nothing. With --root it installs into the file tree of a node image and touches nothing outside it. --dry-run lists the changes.",
  options: [ROOT_OPTION, option("start", "also start the agent")],
  formats: DOCUMENT,
  changes: true,
  run: async (context) => {
    const settings = context.flags.filter(({ name }) => name !== "dryRun");
    if (settings.length > 0)
      context.note(
        `install writes no settings: add ${settings.map(({ written }) => written).join(", ")} to ${CONFIG}`,
      );
    const { dryRun } = context;
    const root = rootOf(context);
    const start = has(context, "start");
    const shellTexts = textsFor(context);
    await changing(context, (say) =>
      installInto({ root, start, from: OWN_EXECUTABLE, shellTexts, dryRun }, say),
    );
    if (dryRun || root !== "/" || context.output !== "table") return;
    context.say(
      start
        ? "next: crigc status; crigc plan shows what would be removed"
        : "next: crigc doctor checks the node; where systemd or OpenRC runs, crigc install --start starts the agent",
    );
  },
});

export const uninstall = command({
  name: "uninstall",
  summary: "remove the executable, service, manual page and completions",
  doc: "Stops the service first, and keeps files that were edited. --dry-run lists the changes.",
  options: [
    ROOT_OPTION,
    option("purge", "also remove configuration, keep rules, ledger and history"),
  ],
  formats: DOCUMENT,
  changes: true,
  run: async (context) => {
    const purge = has(context, "purge");
    const shellTexts = textsFor(context);
    const { dryRun } = context;
    await changing(context, (say) =>
      uninstallFrom({ root: rootOf(context), purge, shellTexts, dryRun }, say),
    );
  },
});

/** A table shows each change as it happens. */
async function changing(
  context: CommandContext,
  work: (say: (change: string) => void) => Promise<void> | void,
): Promise<void> {
  const changes: string[] = [];
  await work((change) => {
    changes.push(change);
    if (context.output === "table") context.say(change);
  });
  const { dryRun } = context;
  const installation = document("Installation", { root: rootOf(context), dryRun, changes });
  await print(context, { document: installation, table: () => "" });
}

const textsFor = (context: CommandContext): ShellTexts => ({
  man: manualPage(context.commands, context.build),
  ...completionScripts,
});

/** "/" is the running system. Relative paths are below the working directory. */
const rootOf = (invocation: Invocation): string => textOf(invocation, "root") ?? "/";
