/** Output formats of commands: table or JSON; lists also wide, YAML, names or IDs. */

import { type JsonObject, printedJson, printedPieces, printedYaml } from "../report/document.ts";
import { clean, type Screen } from "../report/terminal.ts";
import {
  type CommandContext,
  type CommandOption,
  has,
  type Invocation,
  option,
  screenFor,
} from "./command.ts";

export const LIST_OPTIONS: readonly CommandOption[] = [
  option("q", "print IDs only, one per line"),
  option("no-trunc", "do not truncate columns"),
];

/** `keys`: the first is the default order. */
export const sortOption = (keys: readonly string[]): CommandOption =>
  option("sort KEY", `sort by ${keys.join(", ")} [${keys[0]}]`, { choices: keys });

/** A table, or the document with `-o json`. */
export function printAnswer<Report>(
  context: CommandContext,
  invocation: Invocation,
  answer: {
    readonly report: Report;
    readonly document: (report: Report) => JsonObject;
    readonly table: (report: Report, screen: Screen) => string;
  },
): void {
  const { report, document, table } = answer;
  context.stdout(
    invocation.output === "json"
      ? printedJson(document(report))
      : table(report, screenFor(context, invocation)),
  );
}

export interface Listing {
  readonly document: () => JsonObject;
  readonly table: (screen: Screen) => string;
  readonly rows: readonly { readonly id: string; readonly name: string }[];
}

export async function printListing(
  context: CommandContext,
  invocation: Invocation,
  { document, table, rows }: Listing,
): Promise<void> {
  const lines = (texts: readonly string[]): string =>
    texts.map((text) => `${clean(text)}\n`).join("");
  const screen = screenFor(context, invocation);
  const uncut = { ...screen, width: null };
  if (has(invocation, "q")) return context.stdout(lines(rows.map(({ id }) => id)));
  switch (invocation.output) {
    case "json":
      return context.stdoutPieces(printedPieces(document()));
    case "yaml":
      return context.stdout(printedYaml(document()));
    case "name":
      return context.stdout(lines(rows.map(({ name }) => name)));
    case "wide":
      return context.stdout(table({ ...uncut, all: true, wide: true }));
    case "table":
      return context.stdout(table(has(invocation, "no-trunc") ? uncut : screen));
  }
}
