/** `crigc config`: the effective configuration with the source of each value, or the check of one file. */
import type { Config } from "../../config/config.ts";
import { defaultWords } from "../../config/field.ts";
import { fieldNames, fieldOf } from "../../config/fields.ts";
import { loadConfig } from "../../config/load.ts";
import { shown, valuesOf } from "../../config/settings.ts";
import { ConfigError, configIssue } from "../../model/errors.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { document } from "../../report/document.ts";
import { column, type Columns, tableLines } from "../../report/printer.ts";
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

function table(read: Config, screen: Screen): string {
  const rows = fieldNames.map((name): Row => {
    const { kind, from } = read.sources[name];
    const text = kind === "default" ? defaultWords(fieldOf(name)) : clean(shown(read, name));
    return [name, text, [kind, clean(from.join(", "))].join(" ").trimEnd()];
  });
  return `${tableLines(COLUMNS, rows, screen).join("\n")}\n`;
}

type Row = readonly [field: string, value: string, source: string];
const COLUMNS: Columns<Row> = [
  column("FIELD", ([field]) => field),
  column("VALUE", ([, value]) => value, { minimumWidth: 12 }),
  column("SOURCE", ([, , source]) => source, { minimumWidth: 12, cut: "middle" }),
];

const answerOf = (read: Config) => ({
  document: document("Config", {
    files: read.files,
    values: Object.fromEntries(valuesOf(read).map(({ field, ...it }) => [field, it])),
    warnings: read.warnings,
  }),
  table: (_: object, screen: Screen) => table(read, screen),
});
