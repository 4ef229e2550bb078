/** `crigc __complete`, which the scripts of all shells call: prints candidates for the word at the cursor. */
import { dashed } from "../../config/field.ts";
import { fieldByFlag, fieldOf } from "../../config/fields.ts";
import type { CommandOption, CommandWords, Operand } from "../command.ts";
import { outputOptions } from "./help.ts";

/** A word with its help, or a request that the shell complete paths. */
type Proposal = { readonly word: string; readonly help: string } | "files" | "directories";

/**
 * `words`: those up to the cursor, the incomplete one last. Prints one candidate per line, with its help after
 * a tab; `:files` and `:directories` are for the shell.
 */
export function completions(words: readonly string[], commands: readonly CommandWords[]): string {
  const typed = words.at(-1) ?? "";
  // bash makes an equals sign a separate word.
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const { given, valueOf } = read(before, commands);
  const [, flag, value] = /^(-[^=]*)=(.*)$/s.exec(typed) ?? [];
  const start = value ?? (typed === "=" ? "" : typed);
  const asked = flag ?? valueOf;
  const proposals =
    asked !== null
      ? (flagOf(asked, given, commands)?.values ?? [])
      : start.startsWith("-")
        ? flagsOf(given, commands)
        : wordsAfter(given, commands);
  const lines = proposals.flatMap((it) => {
    if (typeof it === "string") return [`:${it}\n`];
    return it.word.startsWith(start) ? [`${it.word}\t${it.help}\n`] : [];
  });
  return [...new Set(lines)].join("");
}

/** Words that are not options, and the flag whose value comes next. */
function read(words: readonly string[], commands: readonly CommandWords[]) {
  const given: string[] = [];
  let valueOf: string | null = null;
  for (const word of words) {
    if (valueOf !== null) valueOf = null;
    else if (!word.startsWith("-")) given.push(word);
    else if (!word.includes("=") && (flagOf(word, given, commands)?.values ?? null) !== null)
      valueOf = word;
  }
  return { given, valueOf };
}

interface Flag {
  readonly word: string;
  readonly help: string;
  /** Candidates for its value; `null`: a switch. */
  readonly values: readonly Proposal[] | null;
}

const flagOf = (
  word: string,
  given: readonly string[],
  commands: readonly CommandWords[],
): Flag | undefined => flagsOf(given, commands).find((flag) => flag.word === word);

function flagsOf(given: readonly string[], commands: readonly CommandWords[]): readonly Flag[] {
  const command = commandOf(given, commands);
  const own = command?.options ?? [];
  const output = command === undefined ? [] : outputOptions(command).map(ofOption);
  return [
    ...own.map(ofOption),
    ...[...fieldByFlag].map(([flag, name]): Flag => {
      const { type, help } = fieldOf(name);
      const word = dashed(flag);
      if (type.kind === "boolean") return { word, help, values: null };
      if (type.kind === "choice") return { word, help, values: choices(type.choices) };
      if (type.kind === "endpoint") return { word, help, values: ["files"] };
      if (type.kind !== "path") return { word, help, values: [] };
      return { word, help, values: [type.of === "file" ? "files" : "directories"] };
    }),
    ...output,
    ...output.map((flag) => ({ ...flag, word: "-o" })),
    { word: "--help", help: "help on the command", values: null },
  ];
}

function ofOption(option: CommandOption): Flag {
  const { name, placeholder, completes, help } = option;
  const paths: readonly Proposal[] =
    completes === undefined ? [] : [completes === "file" ? "files" : "directories"];
  const values = option.choices === undefined ? paths : choices(option.choices);
  return { word: dashed(name), help, values: placeholder === null ? null : values };
}

const choices = (words: readonly string[]): readonly Proposal[] =>
  words.map((word) => ({ word, help: "" }));

const commandOf = (given: readonly string[], commands: readonly CommandWords[]) =>
  commands.find(({ name }) => name === given.slice(0, name.split(" ").length).join(" "));

function wordsAfter(
  given: readonly string[],
  commands: readonly CommandWords[],
): readonly Proposal[] {
  const command = commandOf(given, commands);
  if (command === undefined) {
    const prefix = given.map((word) => `${word} `).join("");
    return commands
      .filter(({ name }) => name.startsWith(prefix))
      .map(({ name, summary }) => {
        const [word = "", ...rest] = name.slice(prefix.length).split(" ");
        return { word, help: rest.length > 0 ? "" : summary };
      });
  }
  if (command.name === "help")
    return [
      ...wordsAfter(given.slice(1), commands),
      ...(given.length === 1 ? choices(["flags", "manual"]) : []),
    ];
  const at = given.length - command.name.split(" ").length;
  const operand: Operand | undefined =
    command.operands[at] ?? command.operands.find(({ repeated }) => repeated);
  if (operand?.completes !== undefined)
    return [operand.completes === "file" ? "files" : "directories"];
  return choices(operand?.choices ?? []);
}
