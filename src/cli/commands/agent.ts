/** `crigc run`, `status`, `hold` and `release`: run the agent, show the running one, and pause it. */

import { screenQuery } from "../../agent/control.ts";
import type { Config } from "../../config/config.ts";
import { parseDuration } from "../../config/units.ts";
import { quoted } from "../../config/words.ts";
import { ConfigError, HostError, usageError } from "../../model/errors.ts";
import type { HoldState } from "../../model/pass.ts";
import { type Duration, plus } from "../../model/time.ts";
import { humanDuration, secondOf } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";

export const run = command({
  name: "run",
  summary: "run the agent until it is stopped",
  doc: "SIGHUP reloads a valid configuration. SIGTERM finishes the removal in flight, abandons a pending stop, and exits. A second agent for the same runtime exits 6.",
  readOnly: false,
  reloads: true,
  // The agent logs the warnings of its configuration itself.
  run: ({ open, read, signal }) => open.agent({ first: read(), read, signal }),
});

export const status = command({
  name: "status",
  summary: "show the running agent: thresholds, passes, filesystems, errors",
  doc: "Needs no runtime. Forecasts when each filesystem reaches the high threshold, and when it is full. Exits 8 if no agent answers.",
  json: true,
  readOnly: true,
  run: async (context) => {
    const path =
      context.output === "json" ? "/status" : `/status.txt?${screenQuery(context.screen)}`;
    try {
      context.stdout(await context.open.askAgent(configToAsk(context), path));
      return exit.done;
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "http") throw thrown;
      context.stderr(`crigc: ${clean(thrown.message)}\n`);
      return exit.unknown;
    }
  },
});

/**
 * Only the run directory is needed. The agent does not run with a file that is broken now, and that is
 * when its status is needed: then no file counts.
 */
function configToAsk(context: CommandContext): Config {
  try {
    return context.config;
  } catch (thrown) {
    const isOfFlag = (source: string): boolean => source.startsWith("-");
    if (!(thrown instanceof ConfigError) || thrown.issues.some((it) => isOfFlag(it.source)))
      throw thrown;
    const what = clean(thrown.message.replaceAll("\n", "; "));
    context.stderr(`crigc: invalid configuration; querying the agent anyway: ${what}\n`);
    return context.alone("runDir");
  }
}

export const hold = command({
  name: "hold",
  summary: "pause garbage collection for a while",
  doc: "Pauses periodic passes, gc (exit 7) and pressure reclaim; a removal in flight is finished. Survives reboots (only restarts, if the state directory cannot be written). A hold whose file cannot be read lasts until crigc release. A new hold replaces the old one.",
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
  doc: "Also ends a hold that cannot be read.",
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
