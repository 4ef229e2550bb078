/** `crigc run`, `status`, `hold` and `release`: run the agent, show the running one, and pause it. */

import { screenQuery } from "../../agent/control.ts";
import type { Config } from "../../config/config.ts";
import { ConfigError, HostError } from "../../model/errors.ts";
import { type Instant, plus } from "../../model/time.ts";
import { holdWords } from "../../report/image-reasons.ts";
import { humanDuration } from "../../report/words.ts";
import {
  command,
  type CommandContext,
  operand,
  option,
  TABLE_OR_JSON,
  textOf,
} from "../command.ts";
import { exit } from "../exit.ts";
import { durationFrom, parsed } from "../values.ts";

export const run = command({
  name: "run",
  summary: "run the agent until it is stopped",
  doc: "SIGHUP reloads a valid configuration. SIGTERM finishes the removal in flight, abandons a pending stop, and exits. A second agent for the same runtime exits 6.",
  changes: true,
  reloads: true,
  // The agent logs the warnings of its configuration itself.
  run: ({ open, read, signal }) => open.agent({ first: read(), read, signal }),
});

export const status = command({
  name: "status",
  summary: "show the running agent: thresholds, passes, filesystems, errors",
  doc: "Needs no runtime. Forecasts when each filesystem reaches the high threshold, and when it is full. Exits 8 if no agent answers.",
  formats: TABLE_OR_JSON,
  run: async (context) => {
    const path =
      context.output === "json" ? "/status" : `/status.txt?${screenQuery(context.screen)}`;
    try {
      context.stdout(await context.open.askAgent(configToAsk(context), path));
      return exit.done;
    } catch (thrown) {
      if (!(thrown instanceof HostError) || thrown.kind !== "http") throw thrown;
      context.note(thrown.message);
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
    const what = thrown.message.replaceAll("\n", "; ");
    context.note(`invalid configuration; querying the agent anyway: ${what}`);
    return context.alone("runDir");
  }
}

export const hold = command({
  name: "hold",
  summary: "pause garbage collection for a while",
  doc: "Pauses periodic passes, gc (exit 7) and pressure reclaim; a removal in flight is finished. Survives reboots (only restarts, if the state directory cannot be written). A hold whose file cannot be read lasts until crigc release. A new hold replaces the old one.",
  operands: [operand("DURATION", "length of the hold, such as 90m, 2h30m or 1d")],
  options: [option("reason TEXT", "reason, shown in status", { mayBeEmpty: true })],
  changes: true,
  run: async (context) => {
    const length = parsed(HOLD_LENGTH, context.operands[0] ?? "", "crigc hold");
    const reason = textOf(context, "reason") ?? "";
    const places = context.open.hold(context.config);
    const lasts = (until: Instant): string =>
      `on hold for ${humanDuration(length)}, ${holdWords({ until, reason })}`;
    if (context.dryRun) {
      const until = plus(context.open.now(), length);
      context.say(`Dry run: garbage collection would be ${lasts(until)}.`);
      return exit.done;
    }
    const { path, until } = places.set({ length, reason });
    context.say(`Garbage collection is ${lasts(until)}; crigc release ends it.`);
    const inForce = places.read();
    if (inForce.kind === "held" && (inForce.until === null || inForce.until > until))
      context.note(`an earlier hold lasts longer: ${holdWords(inForce)}`);
    const { stateDir } = context.config.values;
    if (!path.startsWith(`${stateDir}/`))
      context.note(
        `${stateDir} cannot be written; the hold is stored in ${path} and ends with a reboot`,
      );
    return exit.done;
  },
});

const HOLD_LENGTH = durationFrom(1n, "90m, 2h30m or 1d, above zero");

export const release = command({
  name: "release",
  summary: "end a hold: collection resumes with the next pass",
  doc: "Also ends a hold that cannot be read.",
  changes: true,
  run: async (context) => {
    const places = context.open.hold(context.config);
    const before = places.read();
    const isHeld = before.kind === "held";
    const lasts = !isHeld
      ? ""
      : before.until === null
        ? before.reason || "it had no end"
        : `it would have lasted ${holdWords(before)}`;
    if (context.dryRun) {
      context.say(`Dry run: ${isHeld ? `the hold would be released: ${lasts}` : "no hold found"}.`);
      return;
    }
    // Released whatever was read: an expired one has a file, too.
    const found = places.release();
    if (isHeld) context.say(`Hold released: ${lasts}.`);
    else context.say(found ? "The hold had expired." : "No hold found.");
  },
});
