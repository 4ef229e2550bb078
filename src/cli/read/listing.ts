/** How `images`, `plan`, `history` and `keep list` print: as a table, wide, as JSON or YAML, or as names or IDs alone. */

import { yamlText } from "../../host/yaml.ts";
import { type JsonObject, printedJson } from "../../report/document/json.ts";
import { clean, type Screen } from "../../report/terminal.ts";
import {
  type CommandContext,
  type CommandOption,
  has,
  type Invocation,
  screenFor,
} from "../command.ts";

export const LIST_OPTIONS: readonly CommandOption[] = [
  { name: "q", placeholder: null, help: "print IDs only, one per line" },
  {
    name: "no-trunc",
    placeholder: null,
    help: "do not truncate columns",
  },
];

/** `keys`: what rows are sorted by; the first is the order without the option. */
export const sortOption = (keys: readonly string[]): CommandOption => ({
  name: "sort",
  placeholder: "KEY",
  choices: keys,
  help: `sort by ${keys.join(", ")} [${keys[0]}]`,
});

export interface Listing {
  readonly document: () => JsonObject;
  readonly table: (screen: Screen) => string;
  readonly rows: readonly { readonly id: string; readonly name: string }[];
}

export function printListing(
  context: CommandContext,
  invocation: Invocation,
  { document, table, rows }: Listing,
): void {
  const lines = (texts: readonly string[]): string =>
    texts.map((text) => `${clean(text)}\n`).join("");
  const screen = screenFor(context, invocation);
  const uncut = { ...screen, width: null };
  if (has(invocation, "q")) return context.stdout(lines(rows.map(({ id }) => id)));
  switch (invocation.output) {
    case "json":
      return context.stdout(printedJson(document()));
    case "yaml":
      return context.stdout(yamlText(printedJson(document())));
    case "name":
      return context.stdout(lines(rows.map(({ name }) => name)));
    case "wide":
      return context.stdout(table({ ...uncut, all: true, wide: true }));
    case "table":
      return context.stdout(table(has(invocation, "no-trunc") ? uncut : screen));
  }
}
