/** `crigc __complete`, which the scripts of all shells call: prints candidates for the word at the cursor. */

import { dashed, fieldByFlag } from "../../config/fields.ts";
import { commandOf, tokensOf, wordsOf } from "../args.ts";
import { acceptedOptions, type Command, type CommandOption, type Operand } from "../command.ts";

/** A word with its help, or a request for paths, which the shell completes, or for images. */
type Proposal =
  { readonly word: string; readonly help: string } | NonNullable<Operand["completes"]>;

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
  const tokens = tokensOf(words.slice(0, -1), acceptedOptions(commands));
  const given = wordsOf(tokens);
  const command = commandOf(given, commands);
  const options = [...acceptedOptions(command === null ? [] : [command]).values()];
  const [, flag, start = typed] = /^(-[^=]*)=(.*)$/s.exec(typed) ?? [];
  const last = tokens.at(-1);
  const lacksValue = last?.kind === "option" && last.apart && last.text === null;
  const named = flag ?? (lacksValue ? last.written : undefined);
  const proposals =
    named !== undefined
      ? valuesOf(options.find((it) => namesOf(it).includes(named)) ?? {})
      : start.startsWith("-")
        ? options.flatMap((it) => namesOf(it).map((word) => ({ word, help: it.help })))
        : wordsAfter(given, commands);
  const flags = tokens.flatMap((it) =>
    it.kind === "option" && it.text !== null && fieldByFlag.has(it.name)
      ? [`${it.written}=${it.text}`]
      : [],
  );
  const found = proposals.includes("images")
    ? (await imagesWith(flags)).map((word) => ({ word, help: "" }))
    : proposals;
  const lines = found.flatMap((it) => {
    if (typeof it === "string") return [`:${it}\n`];
    return it.word.startsWith(start) ? [`${it.word}\t${it.help}\n`] : [];
  });
  return [...new Set(lines)].join("");
}

const namesOf = ({ name, short }: CommandOption): readonly string[] =>
  (short === undefined ? [name] : [name, short]).map(dashed);

function valuesOf({
  choices,
  completes,
  proposals,
}: Pick<Operand, "choices" | "completes" | "proposals">): readonly Proposal[] {
  const words = choices ?? proposals;
  if (words !== undefined) return words.map((word) => ({ word, help: "" }));
  return completes === undefined ? [] : [completes];
}

function wordsAfter(given: readonly string[], commands: readonly Command[]): readonly Proposal[] {
  const command = commandOf(given, commands);
  if (command === null) {
    const prefix = given.map((word) => `${word} `).join("");
    return commands
      .filter(({ name }) => name.startsWith(prefix))
      .map(({ name, summary }) => {
        const [word = "", ...rest] = name.slice(prefix.length).split(" ");
        return { word, help: rest.length > 0 ? "" : summary };
      });
  }
  const { name, operands } = command;
  const at = given.length - name.split(" ").length;
  const values = valuesOf(operands[at] ?? operands.find(({ repeated }) => repeated) ?? {});
  return name === "help" ? [...wordsAfter(given.slice(1), commands), ...values] : values;
}
