/** `crigc hold` and `crigc release`: pause collection until it expires or is released. */

import { parseDuration } from "../../config/duration.ts";
import { quoted } from "../../config/value.ts";
import { ConfigError } from "../../model/errors.ts";
import type { HoldState } from "../../model/hold.ts";
import { type Duration, plus, toRfc3339 } from "../../model/time.ts";
import { humanDuration } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import { type Command, textOf } from "../command.ts";
import { exit } from "../exit.ts";

export const hold: Command = {
  name: "hold",
  summary: "pause collection for a while: passes, gc and pressure reclaim",
  doc: "The hold lies in the state directory, or in the run directory where that cannot be written, and outlives restarts and, in the state directory, reboots. It always ends by itself; a new hold takes the place of the old one. A removal that is under way is finished. gc answers with exit 7 while it lasts.",
  operands: [{ name: "DURATION", required: true, help: "how long, such as 90m or 2h30m" }],
  options: [
    {
      name: "reason",
      placeholder: "TEXT",
      mayBeEmpty: true,
      help: "why, for status and for who finds it",
    },
  ],
  json: false,
  readOnly: false,
  run: async (context, invocation) => {
    const [text = ""] = invocation.operands;
    const span = spanOf(text);
    const reason = textOf(invocation, "reason") ?? "";
    const places = context.open.hold(context.config);
    const why = reason === "" ? "" : ` (${clean(reason)})`;
    if (context.dryRun) {
      const until = toRfc3339(plus(context.open.now(), span));
      context.stdout(
        `Dry run: collection would be on hold for ${humanDuration(span)}, until ${until}${why}.\n`,
      );
      return exit.done;
    }
    const { path, until } = places.set({ length: span, reason });
    context.stdout(
      `Collection is on hold for ${humanDuration(span)}, until ${toRfc3339(until)}${why}; crigc release ends it.\n`,
    );
    const { stateDir } = context.config.paths;
    if (!path.startsWith(`${stateDir}/`))
      context.stderr(
        `crigc: ${clean(stateDir)} cannot be written, so the hold lies in ${clean(path)} and ends with a reboot\n`,
      );
    return exit.done;
  },
};

function spanOf(text: string): Duration {
  const span = parseDuration(text);
  if (span !== null && span > 0n) return span;
  const what = span === null ? "is no duration" : "is not above zero";
  const message = `${quoted(text)} ${what}; expected how long to hold, such as 90m or 2h30m`;
  throw new ConfigError([{ source: "crigc hold", text, message }]);
}

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

function wordsOf({ until, reason }: Extract<HoldState, { kind: "held" }>): string {
  if (until === null) return clean(reason) || "it had no end";
  const end = `it would have lasted until ${toRfc3339(until)}`;
  return reason === "" ? end : `${end} (${clean(reason)})`;
}
