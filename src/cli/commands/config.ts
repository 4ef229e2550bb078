/** `crigc config`: the effective configuration with the source of each value, or the check of one file. */
import type { Config } from "../../config/config.ts";
import { defaultWords } from "../../config/field.ts";
import { fieldNames, fieldOf } from "../../config/fields.ts";
import { loadConfig } from "../../config/load.ts";
import { printed, printedText } from "../../config/value/value.ts";
import { document, type JsonObject, printedJson } from "../../report/document/json.ts";
import { type Column, tableLines } from "../../report/table/table.ts";
import { clean, type Screen } from "../../report/terminal.ts";
import { type Command, type CommandContext, type Invocation, textOf } from "../command.ts";
import { exit } from "../exit.ts";

export const config: Command = {
  name: "config",
  summary: "show the effective configuration, each value with its source",
  doc: "The source of a value is default, kubelet, file, drop-in, environment, flag or agent (the running agent's value), with the place where it was set. With --check it reads only that file, over the defaults, and exits 0 if it is valid, 2 if not.",
  operands: [],
  options: [
    {
      name: "check",
      placeholder: "FILE",
      completes: "file",
      help: "check only this file and report its errors",
    },
  ],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const checked = textOf(invocation, "check");
    if (checked !== null) return check(context, invocation, checked);
    const { output } = invocation;
    context.stdout(
      output === "json"
        ? printedJson(configDocument(context.config))
        : table(context.config, context.screen),
    );
    return exit.done;
  },
};

/** No drop-ins, no environment, no other flags: what the file says has to stand by itself. */
function check(context: CommandContext, invocation: Invocation, path: string): number {
  const reader = { ...context.reader, names: () => null };
  const flags = [{ name: "config", written: "--check", text: path }] as const;
  const read = loadConfig({ flags, env: {}, reader });
  for (const warning of read.warnings) context.stderr(`crigc: warning: ${clean(warning)}\n`);
  context.stdout(
    invocation.output === "json" ? printedJson(configDocument(read)) : `${clean(path)} is valid\n`,
  );
  return exit.done;
}

export const configDocument = (read: Config): JsonObject =>
  document("Config", {
    files: read.files,
    values: valuesObject(read),
    warnings: read.warnings,
  });

/** `values` of the documents `Config` and `Status`: durations and sizes as text, as a file would have them. */
export const valuesObject = (read: Config): JsonObject =>
  Object.fromEntries(
    fieldNames.map((name) => {
      const { value, source, from } = read.values[name];
      return [name, { value: printed(fieldOf(name).type, value), source, from }];
    }),
  );

const COLUMNS: readonly Column[] = [
  { title: "FIELD" },
  { title: "VALUE", minimumWidth: 12 },
  { title: "SOURCE", minimumWidth: 12, cut: "middle" },
];

function table(read: Config, screen: Screen): string {
  const rows = fieldNames.map((name) => {
    const { value, source, from } = read.values[name];
    const field = fieldOf(name);
    const text = source === "default" ? defaultWords(field) : clean(printedText(field.type, value));
    return [name, text, [source, clean(from.join(", "))].join(" ").trimEnd()];
  });
  return `${tableLines(COLUMNS, rows, screen).join("\n")}\n`;
}
