/** `crigc config`: the effective configuration with the source of each value, or the check of one file. */
import type { Config } from "../../config/config.ts";
import { loadConfig } from "../../config/load.ts";
import { valuesOf } from "../../config/settings.ts";
import { ConfigError, configIssue } from "../../model/errors.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { document } from "../../report/document.ts";
import { tableLines } from "../../report/printer.ts";
import { VALUE_COLUMNS, type ValuesJson, valuesJson } from "../../report/status.ts";
import { clean, type Screen } from "../../report/terminal.ts";
import { command, type CommandContext, option, TABLE_OR_JSON, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../output.ts";

export const config = command({
  name: "config",
  summary: "show the effective configuration, each value with its source",
  doc: "Sources are default, kubelet, file, drop-in, environment, flag and agent (the running agent). Exits 2 if a value or a keep pattern is invalid.",
  options: [
    option("check FILE", "check only this file and report its errors", { completes: "file" }),
  ],
  formats: TABLE_OR_JSON,
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
      const parsed = parseKeepPattern(text);
      const places = sources[name].from.join(", ");
      return parsed.kind === "valid" ? [] : [configIssue(places, text, parsed.message)];
    }),
  );
  if (issues.length > 0) throw new ConfigError(issues);
}

const answerOf = (read: Config) => ({
  document: document("Config", {
    files: read.files,
    values: valuesJson(valuesOf(read)),
    warnings: read.warnings,
  }),
  table: ({ values }: { readonly values: ValuesJson }, screen: Screen) =>
    `${tableLines(VALUE_COLUMNS, Object.entries(values), screen).join("\n")}\n`,
});
