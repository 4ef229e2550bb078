/** `crigc release`: ends a hold. */

import type { HoldState } from "../model/hold.ts";
import { toRfc3339 } from "../model/time.ts";
import { clean } from "../report/terminal.ts";
import type { Command } from "./command.ts";
import { exit } from "./exit.ts";

export const release: Command = {
  name: "release",
  summary: "end a hold: collection goes on with the next pass",
  doc: "Takes the hold away from the state directory and from the run directory, also one that cannot be read. Without a hold nothing happens.",
  operands: [],
  options: [],
  json: false,
  readOnly: false,
  run: async (context) => {
    const places = context.open.hold(context.config);
    const before = places.read();
    context.stdout(context.dryRun ? dryAnswer(before) : answer(before, places.release()));
    return exit.done;
  },
};

const dryAnswer = (before: HoldState): string =>
  before.kind === "held"
    ? `Dry run: the hold would end: ${wordsOf(before)}.\n`
    : "Dry run: there is no hold.\n";

function answer(before: HoldState, found: boolean): string {
  if (before.kind === "held") return `The hold is over: ${wordsOf(before)}.\n`;
  return found ? "The hold was over already.\n" : "There was no hold.\n";
}

function wordsOf(hold: Extract<HoldState, { kind: "held" }>): string {
  if (hold.until === null) return clean(hold.reason) || "it had no end";
  const end = `it would have lasted until ${toRfc3339(hold.until)}`;
  return hold.reason === "" ? end : `${end} (${clean(hold.reason)})`;
}
