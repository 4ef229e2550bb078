/** `crigc run`, `status`, `hold`, `release` and `config`: run the agent, show the running one, pause it, and its configuration. */

import type { Config } from "../../config/config.ts";
import { loadConfig } from "../../config/load.ts";
import { valuesOf } from "../../config/settings.ts";
import { screenQuery } from "../../engine/client.ts";
import { ConfigError, configIssue, HostError } from "../../model/errors.ts";
import { type Instant, plus } from "../../model/time.ts";
import { parseKeepPattern } from "../../policy/keep/keep.ts";
import { document, type JsonObject, timeOf, yamlOfJson } from "../../report/document.ts";
import { holdWords } from "../../report/reasons.ts";
import { VALUE_COLUMNS, type ValuesJson, valuesJson } from "../../report/status.ts";
import { clean, type Screen, tableLines } from "../../report/terminal.ts";
import { humanDuration } from "../../report/words.ts";
import { durationFrom, parsed } from "../args.ts";
import {
  command,
  type CommandContext,
  DOCUMENT,
  operand,
  option,
  print,
  textOf,
} from "../command.ts";
import { exit } from "../exit.ts";

export const run = command({
  name: "run",
  summary: "run the agent until it is stopped",
  doc: "SIGTERM, SIGINT and SIGHUP finish the removal in flight, abandon a pending stop, and exit. Configuration is read at the start only. A second agent for the same runtime exits 6.",
  changes: true,
  // The agent logs the warnings of its configuration itself.
  run: async ({ open, read, signal, serve }) => {
    const { runAgent } = await import("../../agent/agent.ts");
    await runAgent({ config: read(), signal, command: serve }, open.world);
    return exit.done;
  },
});

export const status = command({
  name: "status",
  summary: "show the running agent: thresholds, passes, filesystems, errors",
  doc: "Needs no runtime. Exits 8 if no agent answers.",
  formats: DOCUMENT,
  run: async (context) => {
    const path =
      context.output === "table" ? `/status.txt?${screenQuery(context.screen)}` : "/status";
    try {
      const text = await context.open.askAgent(context.find(), path);
      context.stdout(context.output === "yaml" ? yamlOfJson(text) : text);
      return exit.done;
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      context.note(thrown.message);
      return exit.unknown;
    }
  },
});

export const hold = command({
  name: "hold",
  summary: "pause garbage collection for a while",
  doc: "Pauses every pass (gc: exit 7); a removal in flight is finished. Survives reboots. A new hold replaces the old one.",
  operands: [operand("DURATION", "length of the hold, such as 90m, 2h30m or 1d")],
  options: [option("reason TEXT", "reason, shown in status", { mayBeEmpty: true })],
  formats: DOCUMENT,
  changes: true,
  inAgent: true,
  run: async (context) => {
    const length = parsed(HOLD_LENGTH, context.operands[0] ?? "", "crigc hold");
    const reason = textOf(context, "reason") ?? "";
    const lasts = (until: Instant): string =>
      `on hold for ${humanDuration(length)}, ${holdWords({ until, reason })}`;
    const { dryRun, user } = context;
    const until = dryRun
      ? plus(context.open.now(), length)
      : context.open.hold(context.config).set({ length, reason, by: `crigc hold, user ${user}` });
    const text = dryRun
      ? `Dry run: garbage collection would be ${lasts(until)}.`
      : `Garbage collection is ${lasts(until)}; crigc release ends it.`;
    await print(context, holdAnswer({ dryRun, until: timeOf(until), reason }, text));
  },
});

const HOLD_LENGTH = durationFrom(1n, "90m, 2h30m or 1d, above zero and at most 106751d");

export const release = command({
  name: "release",
  summary: "end a hold: collection resumes with the next pass",
  doc: "Also ends a hold that cannot be read.",
  formats: DOCUMENT,
  changes: true,
  inAgent: true,
  run: async (context) => {
    const file = context.open.hold(context.config);
    const before = file.read();
    const isHeld = before.kind === "held";
    const lasts = isHeld ? `: ${before.until === null ? before.reason : holdWords(before)}` : "";
    const { dryRun } = context;
    // Released whatever was read: an expired one has a file, too.
    const found = !dryRun && file.release();
    const done = isHeld ? `Hold released${lasts}.` : "The hold had expired.";
    const planned = `Dry run: ${isHeld ? "the hold would be released" : "no hold found"}${lasts}.`;
    const text = dryRun ? planned : isHeld || found ? done : "No hold found.";
    await print(context, holdAnswer({ dryRun, released: isHeld || found }, text));
  },
});

const holdAnswer = (body: JsonObject, text: string) => ({
  document: document("Hold", body),
  table: () => `${clean(text)}\n`,
});

export const config = command({
  name: "config",
  summary: "show the effective configuration, each value with its source",
  doc: "Sources are default, kubelet, file, drop-in, environment and flag. Exits 2 if a value or a keep pattern is invalid.",
  options: [
    option("check FILE", "check only this file and report its errors", { completes: "files" }),
  ],
  formats: DOCUMENT,
  run: async (context) => {
    const checked = textOf(context, "check");
    if (checked !== null) return check(context, checked);
    rejectInvalidPatterns(context.config);
    await print(context, answerOf(context.config));
    return exit.done;
  },
});

/** No drop-ins, environment or other flags: the file must be valid by itself. */
async function check(context: CommandContext, path: string): Promise<number> {
  const reader = { ...context.reader, names: () => null };
  const flags = [{ name: "config", written: "--check", text: path }] as const;
  const read = loadConfig({ flags, env: {}, reader });
  rejectInvalidPatterns(read);
  for (const warning of read.warnings) context.note(`warning: ${warning}`);
  await print(context, { ...answerOf(read), table: () => `${clean(path)} is valid\n` });
  return exit.done;
}

/** A pass treats these as invalid keep rules and removes no image, so `config` and `print` reject them. */
export function rejectInvalidPatterns({ values, sources }: Config): void {
  const issues = (["keep", "podInfraContainerImage"] as const).flatMap((name) =>
    values[name].flatMap((text) => {
      const pattern = parseKeepPattern(text);
      const places = sources[name].from.join(", ");
      return pattern.kind === "valid" ? [] : [configIssue(places, text, pattern.message)];
    }),
  );
  if (issues.length > 0) throw new ConfigError(issues);
}

export const answerOf = (read: Config) => ({
  document: document("Config", {
    files: read.files,
    values: valuesJson(valuesOf(read)),
    warnings: read.warnings,
  }),
  table: ({ values }: { readonly values: ValuesJson }, screen: Screen) =>
    `${tableLines(VALUE_COLUMNS, Object.entries(values), screen).join("\n")}\n`,
});
