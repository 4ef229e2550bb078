/** `crigc __complete`, which the scripts of all shells call: prints candidates for the word at the cursor. */
import { dashed, fieldByFlag } from "../../config/fields.ts";
import { acceptedOptions, type Command, type CommandOption, type Operand } from "../command.ts";

/** A word with its help, or a request for paths, which the shell completes, or for images. */
type Proposal =
  { readonly word: string; readonly help: string } | "files" | "directories" | "images";

/**
 * `words`: those up to the cursor, the incomplete one last. Prints one candidate per line, with its help after
 * a tab; `:files` and `:directories` are for the shell. `imagesWith` lists images with the flags typed so far.
 */
export async function completions(
  words: readonly string[],
  commands: readonly Command[],
  imagesWith: (flags: readonly string[]) => Promise<readonly string[]>,
): Promise<string> {
  const typed = words.at(-1) ?? "";
  const given: string[] = [];
  const flags: string[] = [];
  let valueOf: CommandOption | undefined;
  // bash makes an equals sign a separate word.
  for (const word of words.slice(0, -1).filter((it) => it !== "=")) {
    if (valueOf !== undefined) {
      if (valueOf.field !== undefined) flags.push(`${dashed(valueOf.name)}=${word}`);
      valueOf = undefined;
    } else if (!word.startsWith("-")) given.push(word);
    else if (!word.includes("=")) valueOf = optionWithValue(word, given, commands);
    else if (fieldByFlag.has(word.replace(/^--(.*?)=.*$/s, "$1"))) flags.push(word);
  }
  const [, flag, value] = /^(-[^=]*)=(.*)$/s.exec(typed) ?? [];
  const start = value ?? (typed === "=" ? "" : typed);
  const option = flag === undefined ? valueOf : optionWithValue(flag, given, commands);
  const proposals =
    option !== undefined
      ? valuesOf(option)
      : flag !== undefined
        ? []
        : start.startsWith("-")
          ? optionsAfter(given, commands)
          : wordsAfter(given, commands);
  const found = proposals.includes("images")
    ? (await imagesWith(flags)).map((word) => ({ word, help: "" }))
    : proposals;
  const lines = found.flatMap((it) => {
    if (typeof it === "string") return [`:${it}\n`];
    return it.word.startsWith(start) ? [`${it.word}\t${it.help}\n`] : [];
  });
  return [...new Set(lines)].join("");
}

const commandOf = (given: readonly string[], commands: readonly Command[]) =>
  commands.find(({ name }) => name === given.slice(0, name.split(" ").length).join(" "));

/** Its own options, the flags, and those of every command. */
function optionsOf(given: readonly string[], commands: readonly Command[]) {
  const command = commandOf(given, commands);
  const accepted = [...acceptedOptions(command === undefined ? [] : [command]).values()];
  return accepted.filter(({ name }) => name !== "version");
}

const namesOf = ({ name, short }: CommandOption): readonly string[] =>
  (short === undefined ? [name] : [name, short]).map(dashed);

function optionWithValue(
  word: string,
  given: readonly string[],
  commands: readonly Command[],
): CommandOption | undefined {
  const option = optionsOf(given, commands).find((it) => namesOf(it).includes(word));
  return option?.placeholder === null ? undefined : option;
}

const optionsAfter = (given: readonly string[], commands: readonly Command[]) =>
  optionsOf(given, commands).flatMap((option) =>
    namesOf(option).map((word) => ({ word, help: option.help })),
  );

function valuesOf({
  choices,
  completes,
  proposals,
}: Omit<Operand, "name" | "required" | "help">): readonly Proposal[] {
  const words = choices ?? proposals;
  if (words !== undefined) return words.map((word) => ({ word, help: "" }));
  return completes === undefined ? [] : [PLURALS[completes]];
}

const PLURALS = { file: "files", directory: "directories", image: "images" } as const;

function wordsAfter(given: readonly string[], commands: readonly Command[]): readonly Proposal[] {
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
      ...(given.length === 1 ? valuesOf({ choices: ["flags", "manual"] }) : []),
    ];
  const at = given.length - command.name.split(" ").length;
  return valuesOf(command.operands[at] ?? command.operands.find(({ repeated }) => repeated) ?? {});
}
