/** `crigc help`: the same as `--help`, the list of all flags, and the manual page. */
import { command } from "../command.ts";
import { exit } from "../exit.ts";
import { helpOn } from "../help/help.ts";
import { manualPage } from "../help/man.ts";

export const help = command({
  name: "help",
  summary: "show help on a command or all flags, or the manual page",
  doc: "`crigc help flags` lists every flag; `crigc help manual` prints the manual page, for `man -l -`.",
  operands: [
    { name: "COMMAND", required: false, repeated: true, help: "a command, flags or manual" },
  ],
  readOnly: true,
  ofItself: true,
  run: async (context, { operands }) => {
    const topic = operands.join(" ");
    context.stdout(
      topic === "manual"
        ? manualPage(context.commands, context.build)
        : helpOn(topic, context.commands, context.screen),
    );
    return exit.done;
  },
});
