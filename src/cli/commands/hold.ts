/** `crigc hold` and `crigc release`: pause collection until it expires or is released. */

import { parseDuration } from "../../config/units.ts";
import { quoted } from "../../config/words.ts";
import { usageError } from "../../model/errors.ts";
import type { HoldState } from "../../model/pass.ts";
import { type Duration, plus } from "../../model/time.ts";
import { humanDuration, secondOf } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import { command, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";

export const hold = command({
  name: "hold",
  summary: "pause garbage collection for a while",
  doc: "Pauses periodic passes, gc and pressure reclaim. The hold is stored in the state directory (or in the run directory if that cannot be written) and survives restarts and, in the state directory, reboots. It expires after DURATION; if its file cannot be read, it stays in force until crigc release. A new hold replaces the old one. A removal in flight is finished. During a hold, gc exits 7.",
  operands: [
    { name: "DURATION", required: true, help: "length of the hold, such as 90m, 2h30m or 1d" },
  ],
  options: [option("reason TEXT", "reason, shown in status", { mayBeEmpty: true })],
  readOnly: false,
  run: async (context) => {
    const [text = ""] = context.operands;
    const span = spanOf(text);
    const reason = textOf(context, "reason") ?? "";
    const places = context.open.hold(context.config);
    const why = reason === "" ? "" : ` (${clean(reason)})`;
    if (context.dryRun) {
      const until = secondOf(plus(context.open.now(), span));
      context.stdout(
        `Dry run: garbage collection would be on hold for ${humanDuration(span)}, until ${until}${why}.\n`,
      );
      return exit.done;
    }
    const { path, until } = places.set({ length: span, reason });
    context.stdout(
      `Garbage collection is on hold for ${humanDuration(span)}, until ${secondOf(until)}${why}; crigc release ends it.\n`,
    );
    const inForce = places.read();
    if (inForce.kind === "held" && (inForce.until === null || inForce.until > until))
      context.stderr(`crigc: an earlier hold lasts longer: ${wordsOf(inForce)}\n`);
    const { stateDir } = context.config.values;
    if (!path.startsWith(`${stateDir}/`))
      context.stderr(
        `crigc: ${clean(stateDir)} cannot be written; the hold is stored in ${clean(path)} and ends with a reboot\n`,
      );
    return exit.done;
  },
});

function spanOf(text: string): Duration {
  const span = parseDuration(text);
  if (span !== null && span > 0n) return span;
  const message = `invalid duration ${quoted(text)}: use 90m, 2h30m or 1d${span === null ? "" : ", above zero"}`;
  throw usageError("crigc hold", text, message);
}

export const release = command({
  name: "release",
  summary: "end a hold: collection resumes with the next pass",
  doc: "Removes the hold from the state directory and the run directory, even if it cannot be read. Does nothing without a hold.",
  readOnly: false,
  run: async (context) => {
    const places = context.open.hold(context.config);
    const before = places.read();
    context.stdout(context.dryRun ? dryAnswer(before) : answer(before, places.release()));
    return exit.done;
  },
});

const dryAnswer = (before: HoldState): string =>
  before.kind === "held"
    ? `Dry run: the hold would be released: ${lastsUntil(before)}.\n`
    : "Dry run: no hold found.\n";

function answer(before: HoldState, found: boolean): string {
  if (before.kind === "held") return `Hold released: ${lastsUntil(before)}.\n`;
  return found ? "The hold had expired.\n" : "No hold found.\n";
}

const lastsUntil = (held: Extract<HoldState, { kind: "held" }>): string =>
  `${held.until === null ? "" : "it would have lasted "}${wordsOf(held)}`;

function wordsOf({ until, reason }: Extract<HoldState, { kind: "held" }>): string {
  if (until === null) return clean(reason) || "it had no expiry";
  const end = `until ${secondOf(until)}`;
  return reason === "" ? end : `${end} (${clean(reason)})`;
}
