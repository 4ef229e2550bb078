/** What completion knows, the same for every shell: words, flags, and what stands behind them. */
import { dashed } from "../../config/field.ts";
import { fieldByFlag, fieldOf } from "../../config/fields.ts";
import { OUTPUT } from "../help.ts";
import type { CommandOption, CommandWords } from "../words.ts";

/** What stands behind a flag; `none`: it is a switch, `text`: nothing can be proposed. */
export type Behind =
  | { readonly kind: "none" | "text" | "file" | "directory" }
  | { readonly kind: "choices"; readonly choices: readonly string[] };

export interface CompletedFlag {
  /** With dashes. */
  readonly name: string;
  readonly help: string;
  readonly behind: Behind;
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** Words that may stand behind it. */
  readonly choices: readonly string[];
}

export interface CompletionTable {
  readonly commands: readonly CompletedCommand[];
  /** Flags of every command. */
  readonly flags: readonly CompletedFlag[];
}

export function completionTable(commands: readonly CommandWords[]): CompletionTable {
  return {
    commands: commands.map((command) => ({
      name: command.name,
      summary: command.summary,
      flags: command.options.map(ofOption),
      choices:
        command.name === "help"
          ? topicsOf(commands)
          : command.operands.flatMap(({ choices }) => choices ?? []),
    })),
    flags: [
      ...[...fieldByFlag].map(([flag, name]) => ofField(flag, name)),
      ofOption(OUTPUT),
      {
        name: "-o",
        help: "how to answer",
        behind: { kind: "choices", choices: ["table", "json"] },
      },
      { name: "--help", help: "help on the command", behind: { kind: "none" } },
    ],
  };
}

const topicsOf = (commands: readonly CommandWords[]): readonly string[] => [
  ...new Set(commands.map(({ name }) => name.split(" ")[0] ?? name)),
  "flags",
  "manual",
];

function ofField(flag: string, name: Parameters<typeof fieldOf>[0]): CompletedFlag {
  const { type, help } = fieldOf(name);
  return { name: dashed(flag), help, behind: behindOf(type) };
}

function behindOf(type: ReturnType<typeof fieldOf>["type"]): Behind {
  if (type.kind === "boolean") return { kind: "none" };
  if (type.kind === "choice") return { kind: "choices", choices: type.choices };
  if (type.kind === "path") return { kind: type.of };
  return { kind: type.kind === "endpoint" ? "file" : "text" };
}

function ofOption({ name, placeholder, choices, completes, help }: CommandOption): CompletedFlag {
  const behind: Behind =
    choices !== undefined
      ? { kind: "choices", choices }
      : { kind: placeholder === null ? "none" : (completes ?? "text") };
  return { name: dashed(name), help, behind };
}

/** Flags by what stands behind them, so that a script needs one line for each sort; switches aside. */
export interface FlagSorts {
  readonly text: readonly string[];
  readonly file: readonly string[];
  readonly directory: readonly string[];
  readonly choices: readonly (readonly [string, readonly string[]])[];
}

export function flagSorts(table: CompletionTable): FlagSorts {
  const all = [...table.flags, ...table.commands.flatMap(({ flags }) => flags)];
  const named = (kind: Behind["kind"]): readonly string[] => [
    ...new Set(all.filter(({ behind }) => behind.kind === kind).map(({ name }) => name)),
  ];
  return {
    text: named("text"),
    file: named("file"),
    directory: named("directory"),
    choices: all.flatMap(({ name, behind }) =>
      behind.kind === "choices" ? [[name, behind.choices] as const] : [],
    ),
  };
}

/** The words that may come after the words before: commands after none, second words, choices. */
export function nextWords(
  table: CompletionTable,
): readonly (readonly [string, readonly string[]])[] {
  const after = new Map<string, string[]>();
  for (const { name, choices } of table.commands) {
    const [first = "", second] = name.split(" ");
    after.set("", [...(after.get("") ?? []), first]);
    if (second !== undefined) after.set(first, [...(after.get(first) ?? []), second]);
    if (choices.length > 0) after.set(name, [...choices]);
  }
  return [...after].map(([before, words]) => [before, [...new Set(words)]]);
}
