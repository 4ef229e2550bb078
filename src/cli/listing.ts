/** Output formats of commands: table or JSON; lists also wide, YAML, names or IDs. */

import { type JsonObject, printedPieces, printedYaml } from "../report/document.ts";
import { clean, type Screen } from "../report/terminal.ts";
import { type CommandContext, type CommandOption, has, option, screenFor } from "./command.ts";

export const LIST_OPTIONS: readonly CommandOption[] = [
  option("q", "print IDs only, one per line"),
  option("no-trunc", "do not truncate columns"),
];

/** `keys`: the first is the default order. */
export const sortOption = (keys: readonly string[]): CommandOption =>
  option("sort KEY", `sort by ${keys.join(", ")} [${keys[0]}]`, { choices: keys });

interface Row {
  readonly id: string;
  readonly name: string;
}

export interface Answer<Document extends JsonObject> {
  readonly document: Document;
  /** Rendered from the document. */
  readonly table: (document: Document, screen: Screen) => string;
  /** Of a list. */
  readonly rows?: (document: Document) => readonly Row[];
}

/** Prints the answer in the format of `-o`. */
export async function print<Document extends JsonObject>(
  context: CommandContext,
  { document, table, rows = () => [] }: Answer<Document>,
): Promise<void> {
  const lines = (texts: readonly string[]): string =>
    texts.map((text) => `${clean(text)}\n`).join("");
  const screen = screenFor(context);
  const uncut = { ...screen, width: null };
  if (has(context, "q")) return context.stdout(lines(rows(document).map(({ id }) => id)));
  switch (context.output) {
    case "json":
      return context.stdoutPieces(printedPieces(document));
    case "yaml":
      return context.stdout(printedYaml(document));
    case "name":
      return context.stdout(lines(rows(document).map(({ name }) => name)));
    case "wide":
      return context.stdout(table(document, { ...uncut, all: true, wide: true }));
    case "table":
      return context.stdout(table(document, has(context, "no-trunc") ? uncut : screen));
  }
}
