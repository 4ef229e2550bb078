/** Prints the results of commands in the format of `-o`: a table, JSON or YAML; lists also as names or IDs. */

import { type JsonObject, printedJson, printedYaml } from "../report/document.ts";
import { clean, type Screen } from "../report/terminal.ts";
import { type CommandContext, type CommandOption, has, option } from "./command.ts";

export const QUIET = option("q", "print only IDs (df: repositories), one per line");

/** `keys`: the first is the default order. */
export const sortOption = (keys: readonly string[]): CommandOption =>
  option("sort KEY", `sort by ${keys.join(", ")} [${keys[0]}]`, { choices: keys });

interface Row {
  readonly id: string;
  readonly name: string;
}

/** Prints a document in the format of `-o`. `table`: rendered from it. `rows`: of a list. */
export async function print<Document extends JsonObject>(
  context: CommandContext,
  {
    document,
    table,
    rows = () => [],
  }: {
    readonly document: Document;
    readonly table: (document: Document, screen: Screen) => string;
    readonly rows?: (document: Document) => readonly Row[];
  },
): Promise<void> {
  const lines = (texts: readonly string[]): void =>
    context.stdout(texts.map((text) => `${clean(text)}\n`).join(""));
  if (has(context, "q")) return lines(rows(document).map(({ id }) => id));
  switch (context.output) {
    case "json":
      return context.stdout(printedJson(document));
    case "yaml":
      return context.stdout(printedYaml(document));
    case "name":
      return lines(rows(document).map(({ name }) => name));
    case "table":
      return context.stdout(table(document, context.screen));
  }
}
