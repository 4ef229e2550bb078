/** Parses a command line against the tables: the command, its operands, options and flags. */

import { placeholderOf } from "../config/field.ts";
import { fieldByFlag, fieldOf } from "../config/fields.ts";
import type { FlagText } from "../config/source/arguments.ts";
import { nearest, suggestion } from "../config/source/nearest.ts";
import { quoted } from "../config/value/described.ts";
import { ConfigError, type ConfigIssue, configIssue } from "../model/errors.ts";
import {
  type Command,
  type CommandOption,
  type Format,
  formatsOf,
  type Invocation,
  LIST_FORMATS,
  type Operand,
} from "./command.ts";
import { optionNames, type OptionToken, type Token, tokensOf } from "./tokens.ts";

export type Parsed =
  | {
      readonly kind: "run";
      readonly command: Command;
      readonly invocation: Invocation;
      readonly flags: readonly FlagText[];
    }
  /** `topic`: the words before `--help`, "" for none. */
  | { readonly kind: "help"; readonly topic: string }
  | { readonly kind: "version"; readonly output: "table" | "json" }
  /** No arguments. */
  | { readonly kind: "nothing" };

/** Throws `ConfigError` with all errors. */
export function parseCommandLine(argv: readonly string[], commands: readonly Command[]): Parsed {
  // The command determines which options take values, and is the first word that is not the value of an option.
  const anyOptions = commands.flatMap(({ options }) => options);
  const words = wordsOf(tokensOf(argv, anyOptions));
  const command = commandOf(words, commands);
  const tokens = tokensOf(argv, command?.options ?? anyOptions);
  const asked = (name: string): boolean =>
    tokens.some((it) => it.kind === "option" && it.name === name);
  if (asked("help")) return { kind: "help", topic: command?.name ?? words.join(" ") };
  const read = readOptions(tokens, command?.options ?? anyOptions);
  if (asked("version"))
    return { kind: "version", output: outputOf(read.output) === "json" ? "json" : "table" };
  if (command === null && tokens.length === 0) return { kind: "nothing" };
  const operands = wordsOf(tokens).slice(command?.name.split(" ").length ?? 0);
  const issues = [
    // The word may be the value of an unknown flag: then report the flag.
    ...(command === null
      ? unknownCommand(words, commands)
      : operandIssues(command, operands)
    ).filter(({ text }) => text === "" || read.issues.length === 0),
    ...read.issues,
    ...(command === null ? [] : formatIssues(command, outputOf(read.output))),
    ...(read.options.has("q") ? quietIssues(outputOf(read.output)) : []),
  ];
  if (command === null || issues.length > 0) throw new ConfigError(issues);
  const invocation = { operands, options: read.options, output: outputOf(read.output) };
  return { kind: "run", command, invocation, flags: read.flags };
}

const wordsOf = (tokens: readonly Token[]): readonly string[] =>
  tokens.flatMap((token) => (token.kind === "word" ? [token.text] : []));

/** Two words first: `keep list` is a command. */
function commandOf(words: readonly string[], commands: readonly Command[]): Command | null {
  const named = (name: string): Command | undefined => commands.find((it) => it.name === name);
  return named(words.slice(0, 2).join(" ")) ?? named(words[0] ?? "") ?? null;
}

interface OptionsRead {
  readonly flags: readonly FlagText[];
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly output: string | null;
  readonly issues: readonly ConfigIssue[];
}

function readOptions(tokens: readonly Token[], known: readonly CommandOption[]): OptionsRead {
  const flags: FlagText[] = [];
  const options = new Map<string, string[]>();
  const issues: ConfigIssue[] = [];
  let output: string | null = null;
  for (const token of tokens) {
    if (token.kind === "word" || token.name === "version") continue;
    const read = readOption(token, known);
    if (read.kind === "issue") issues.push(read.issue);
    else if (read.kind === "flag") flags.push(read.flag);
    else if (read.kind === "output") output = read.text;
    else if (read.kind === "option")
      options.set(token.name, [...(options.get(token.name) ?? []), ...read.texts]);
  }
  return { flags, options, output, issues };
}

type OptionRead =
  | { readonly kind: "flag"; readonly flag: FlagText }
  | { readonly kind: "option"; readonly texts: readonly string[] }
  | { readonly kind: "output"; readonly text: string }
  | { readonly kind: "nothing" }
  | { readonly kind: "issue"; readonly issue: ConfigIssue };

function readOption(token: OptionToken, known: readonly CommandOption[]): OptionRead {
  const { name, written, text } = token;
  const own = known.find((it) => it.name === name);
  if (own !== undefined) return readOwn(own, token);
  if (name === "output") return readOutput(token);
  const field = fieldByFlag.get(name);
  if (field === undefined) {
    const near = suggestion(asLong(written), optionNames(known));
    const next = near === "" ? "; crigc help flags lists all flags" : near;
    return issueOf("crigc", written, `unknown flag ${written}${next}`);
  }
  if (text === null && fieldOf(field).type.kind === "boolean")
    return { kind: "flag", flag: { name: field, written, text: "true" } };
  if (text === null || isForgotten(token)) return missing(token, placeholderOf(fieldOf(field)));
  return { kind: "flag", flag: { name: field, written, text } };
}

const asLong = (written: string): string => (written.startsWith("--") ? written : `-${written}`);

/** `--keep --dry-run` is a forgotten value; taken as a pattern, the run would not be dry. */
const isForgotten = ({ text, apart }: OptionToken): boolean =>
  text === null || (apart && text.startsWith("--"));

function readOwn(own: CommandOption, token: OptionToken): OptionRead {
  const { written, text } = token;
  if (own.placeholder === null) {
    if (text === null || text === "true") return { kind: "option", texts: [] };
    if (text === "false") return { kind: "nothing" };
    return issueOf(written, text, `invalid value ${quoted(text)}: use true or false`);
  }
  if (text === null || isForgotten(token)) return missing(token, own.placeholder);
  if (text === "" && own.mayBeEmpty !== true)
    return issueOf(written, text, `empty value; expected ${own.placeholder}`);
  if (own.choices !== undefined && !own.choices.includes(text))
    return issueOf(written, text, `invalid value ${quoted(text)}: use ${own.choices.join(", ")}`);
  return { kind: "option", texts: [text] };
}

function readOutput(token: OptionToken): OptionRead {
  const { written, text } = token;
  if (text === null) return missing(token, "table or json");
  if (LIST_FORMATS.some((format) => format === text)) return { kind: "output", text };
  return issueOf(
    written,
    text,
    `unknown output format ${quoted(text)}; use table or json, for lists also wide, yaml or name`,
  );
}

const outputOf = (text: string | null): Format =>
  LIST_FORMATS.find((format) => format === text) ?? "table";

const missing = ({ written }: OptionToken, placeholder: string): OptionRead =>
  issueOf(written, written, `missing value; expected ${placeholder}`);

const issueOf = (source: string, text: string, message: string): OptionRead => ({
  kind: "issue",
  issue: configIssue(source, text, message),
});

function formatIssues(command: Command, output: Format): readonly ConfigIssue[] {
  const formats = formatsOf(command);
  if (output === "table" || formats.includes(output)) return [];
  if (output === "json" && command.alwaysJson === true) return [];
  const message =
    formats.length === 0
      ? `crigc ${command.name} prints text only; leave -o out`
      : `crigc ${command.name} has no output format ${output}; use ${formats.join(" or ")}`;
  return [configIssue("-o", output, message)];
}

const quietIssues = (output: Format): readonly ConfigIssue[] =>
  output === "table"
    ? []
    : [configIssue("-q", "", `it prints IDs only and contradicts -o ${output}; use one of them`)];

/** "" if nothing is close. */
function meant(text: string, names: readonly string[]): string {
  const name = nearest(text, names);
  return name === null ? "" : `; did you mean ${quoted(name)}?`;
}

function unknownCommand(
  words: readonly string[],
  commands: readonly Command[],
): readonly ConfigIssue[] {
  const [first, second] = words;
  if (first === undefined)
    return [configIssue("crigc", "", "missing command; crigc help lists them")];
  const family = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (family.length > 0) {
    const names = family.map(({ name }) => name.slice(first.length + 1));
    const what =
      second === undefined
        ? `missing subcommand: ${names.join(", ")}`
        : `unknown subcommand ${quoted(second)}${meant(second, names) || `; use ${names.join(", ")}`}`;
    return [configIssue(`crigc ${first}`, second ?? "", what)];
  }
  const known = commands.map(({ name }) => name);
  const next = meant(first, known) || "; crigc help lists the commands";
  return [configIssue("crigc", first, `unknown command ${quoted(first)}${next}`)];
}

function operandIssues(
  { name, operands }: Command,
  given: readonly string[],
): readonly ConfigIssue[] {
  const issue = (text: string, message: string): ConfigIssue =>
    configIssue(`crigc ${name}`, text, message);
  const absent = operands
    .filter(({ required }, index) => required && given[index] === undefined)
    .map((operand) => issue("", `missing ${operand.name}: ${expected(operand)}`));
  const wrong = given.flatMap((text, index) => {
    const operand = operands[index] ?? operands.find(({ repeated }) => repeated);
    if (operand === undefined) return [issue(text, `unexpected argument ${quoted(text)}`)];
    if (text.trim() === "")
      return [issue(text, `empty ${operand.name}; expected ${expected(operand)}`)];
    const { choices } = operand;
    if (choices === undefined || choices.includes(text)) return [];
    const next = meant(text, choices) || `; use ${choices.join(", ")}`;
    return [issue(text, `invalid ${operand.name} ${quoted(text)}${next}`)];
  });
  return [...absent, ...wrong];
}

const expected = ({ choices, help }: Operand): string =>
  choices === undefined ? help : `one of ${choices.join(", ")}`;
