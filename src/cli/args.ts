/** Parses a command line against the tables: the command, its operands, options and flags; and the values of options. */

import { dashed } from "../config/fields.ts";
import type { FlagText } from "../config/settings.ts";
import { parseDuration } from "../config/units.ts";
import { quoted, suggestion } from "../config/words.ts";
import { ConfigError, type ConfigIssue, configIssue, usageError } from "../model/errors.ts";
import type { Duration } from "../model/time.ts";
import {
  acceptedOptions,
  type Command,
  type CommandOption,
  type Invocation,
  LIST,
  type Operand,
  textOf,
} from "./command.ts";

/** A command line, parsed. */
export interface CommandLine {
  readonly command: Command;
  readonly invocation: Invocation;
  readonly flags: readonly FlagText[];
}

/** Throws `ConfigError` with all errors. */
export function parseCommandLine(
  argv: readonly string[],
  commands: readonly Command[],
): CommandLine {
  // The command is the first word that is not the value of an option, whoever's option that is.
  const anyOptions = acceptedOptions(commands);
  const tokens = tokensOf(argv, anyOptions);
  const words = wordsOf(tokens);
  const command = commandOf(words, commands);
  const asksFor = (name: string): boolean =>
    tokens.some((it) => it.kind === "option" && it.name === name);
  if (asksFor("help"))
    return parseCommandLine(["help", "--", ...(command?.name.split(" ") ?? words)], commands);
  if (asksFor("version")) return parseCommandLine(["version"], commands);
  // Otherwise the word may be the value of an unknown flag.
  if (command === null && tokens[0]?.kind === "word")
    throw new ConfigError(unknownCommand(words, commands));
  const read = readOptions(tokens, command === null ? anyOptions : acceptedOptions([command]));
  const output = LIST.find((it) => it === read.options.get("output")?.at(-1)) ?? "table";
  const operands = words.slice(command?.name.split(" ").length ?? 0);
  const issues = [
    ...(command === null
      ? unknownCommand(words, commands)
      : operandIssues(command, operands)
    ).filter(({ text }) => text === "" || read.issues.length === 0),
    ...read.issues,
    ...(read.options.has("q") && output !== "table"
      ? [configIssue("-q", "", `it prints IDs only and contradicts -o ${output}; use one of them`)]
      : []),
  ];
  if (command === null || issues.length > 0) throw new ConfigError(issues);
  const invocation = { operands, options: read.options, output };
  return { command, invocation, flags: read.flags };
}

interface OptionToken {
  readonly kind: "option";
  /** Without dashes; "" if unknown. */
  readonly name: string;
  /** As given: `--keep-per-repository`, `-v`. */
  readonly written: string;
  /** `null`: not given. */
  readonly text: string | null;
  /** Given as a separate word, not after an equals sign. */
  readonly apart: boolean;
}

type Token = OptionToken | { readonly kind: "word"; readonly text: string };
type Options = ReadonlyMap<string, CommandOption>;

/** `--name`, `--name=value`, `-n`, `-n=value`, `-nvalue`; what takes a value takes the next word. */
export function tokensOf(argv: readonly string[], options: Options): readonly Token[] {
  const byLetter = new Map(Array.from(options.values(), (it) => [it.short ?? it.name, it]));
  const end = argv.indexOf("--");
  const tokens: Token[] = [];
  const left = end < 0 ? [...argv] : argv.slice(0, end);
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    const [, written = "", rest = ""] = /^(--[^=]+|-[^-=])(.*)$/s.exec(word) ?? [];
    // `-config` is no `-c` with a value.
    const whole = word.replace(/=.*$/s, "");
    const isMisspelt = whole.length > 2 && options.has(whole.slice(1));
    const byName = written.startsWith("--") ? options.get(written.slice(2)) : undefined;
    const option = byName ?? (isMisspelt ? undefined : byLetter.get(written.slice(1)));
    const isSwitch = option?.placeholder === null;
    if (written === "") tokens.push(wordToken(word));
    else if (option === undefined || (isSwitch && /^[^=]/.test(rest)))
      tokens.push({ kind: "option", name: "", written: whole, text: null, apart: false });
    else {
      const apart = rest === "" && !isSwitch;
      const inline = rest === "" ? null : rest.replace(/^=/, "");
      const text = apart ? (left.shift() ?? null) : inline;
      tokens.push({ kind: "option", name: option.name, written, text, apart });
    }
  }
  return [...tokens, ...(end < 0 ? [] : argv.slice(end + 1).map(wordToken))];
}

const wordToken = (text: string): Token => ({ kind: "word", text });

export const wordsOf = (tokens: readonly Token[]): readonly string[] =>
  tokens.flatMap((token) => (token.kind === "word" ? [token.text] : []));

/** Two words first: `keep list` is a command. */
export function commandOf(words: readonly string[], commands: readonly Command[]): Command | null {
  const named = (name: string): Command | undefined => commands.find((it) => it.name === name);
  return named(words.slice(0, 2).join(" ")) ?? named(words[0] ?? "") ?? null;
}

interface OptionsRead {
  readonly flags: FlagText[];
  readonly options: Map<string, readonly string[]>;
  readonly issues: ConfigIssue[];
}

function readOptions(tokens: readonly Token[], options: Options): OptionsRead {
  const read: OptionsRead = { flags: [], options: new Map(), issues: [] };
  for (const token of tokens) {
    if (token.kind === "word") continue;
    const option = options.get(token.name);
    const issue =
      option === undefined ? unknownFlag(token, options) : readOption(token, option, read);
    if (issue !== null) read.issues.push(issue);
  }
  return read;
}

const PRINTS_TEXT = "it prints text only; leave it out";
const ASKS_NOTHING = "crigc asks no questions; leave it out";
/** For flags and commands of other tools, if the nearest of ours would mislead. */
const HINTS: Readonly<Record<string, string>> = {
  "-o": PRINTS_TEXT,
  "--output": PRINTS_TEXT,
  "-y": ASKS_NOTHING,
  "--yes": ASKS_NOTHING,
  "-f": ASKS_NOTHING,
  "--force": ASKS_NOTHING,
  "-w": "use watch crigc status",
  "-a": "--all-unused removes everything unused",
  "--all": "--all-unused removes everything unused",
  "-r": "use --container-runtime-endpoint",
  "--runtime-endpoint": "use --container-runtime-endpoint",
  prune: "use crigc gc",
  rmi: "use crigc rm",
  inspect: "use crigc explain",
};

const hintFor = (written: string): string =>
  Object.hasOwn(HINTS, written) ? `; ${HINTS[written]}` : "";

function unknownFlag({ written }: OptionToken, options: Options): ConfigIssue {
  const long = written.startsWith("--") ? written : `-${written}`;
  const next =
    hintFor(written) ||
    suggestion(long, Array.from(options.keys(), dashed)) ||
    "; crigc help flags lists all flags";
  return configIssue("crigc", written, `unknown flag ${written}${next}`);
}

/** The value of an option or flag goes to `read`; returns what is wrong with it. */
function readOption(
  token: OptionToken,
  option: CommandOption,
  read: OptionsRead,
): ConfigIssue | null {
  const { name, written, apart } = token;
  const { placeholder, field, choices } = option;
  const text = token.text ?? (placeholder === null ? "true" : null);
  const issue = (message: string): ConfigIssue => configIssue(written, text ?? written, message);
  // `--keep --dry-run` is a forgotten value; taken as a pattern, the run would not be dry.
  if (text === null || (apart && /^-[-a-z]/i.test(text)))
    return configIssue(written, written, `missing value; expected ${placeholder}`);
  if (field !== undefined) {
    read.flags.push({ name: field, written, text });
    return null;
  }
  if (placeholder === null) {
    if (text === "true") read.options.set(name, read.options.get(name) ?? []);
    return text === "true" || text === "false"
      ? null
      : issue(`invalid value ${quoted(text)}: use true or false`);
  }
  if (text === "" && option.mayBeEmpty !== true)
    return issue(`empty value; expected ${placeholder}`);
  if (choices !== undefined && !choices.includes(text))
    return issue(`invalid value ${quoted(text)}: use ${choices.join(", ")}`);
  read.options.set(name, [...(read.options.get(name) ?? []), text]);
  return null;
}

function unknownCommand(
  [first, second]: readonly string[],
  commands: readonly Command[],
): readonly ConfigIssue[] {
  if (first === undefined)
    return [configIssue("crigc", "", "missing command; crigc help lists them")];
  const names = commands
    .filter(({ name }) => name.startsWith(`${first} `))
    .map(({ name }) => name.slice(first.length + 1));
  if (names.length > 0) {
    const what =
      second === undefined
        ? `missing subcommand: ${names.join(", ")}`
        : `unknown subcommand ${quoted(second)}${suggestion(second, names, quoted) || `; use ${names.join(", ")}`}`;
    return [configIssue(`crigc ${first}`, second ?? "", what)];
  }
  const known = commands.map(({ name }) => name);
  const next =
    hintFor(first) || suggestion(first, known, quoted) || "; crigc help lists the commands";
  return [configIssue("crigc", first, `unknown command ${quoted(first)}${next}`)];
}

function operandIssues(
  { name, operands }: Command,
  given: readonly string[],
): readonly ConfigIssue[] {
  const issue = (text: string, message: string): ConfigIssue =>
    configIssue(`crigc ${name}`, text, message);
  const expected = ({ choices, help }: Operand): string =>
    choices === undefined ? help : `one of ${choices.join(", ")}`;
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
    const next = suggestion(text, choices, quoted) || `; use ${choices.join(", ")}`;
    return [issue(text, `invalid ${operand.name} ${quoted(text)}${next}`)];
  });
  return [...absent, ...wrong];
}

export interface ValueType<Value> {
  readonly what: string;
  /** What is valid. */
  readonly use: string;
  /** `null`: invalid. */
  readonly read: (text: string) => Value | null;
}

/** Throws `ConfigError`. */
export function parsed<Value>(type: ValueType<Value>, text: string, source: string): Value {
  const value = type.read(text);
  if (value !== null) return value;
  throw usageError(source, text, `invalid ${type.what} ${quoted(text)}: use ${type.use}`);
}

/** The value of an option; `null`: not given. Throws `ConfigError`. */
export function valueOf<Value>(
  invocation: Invocation,
  name: string,
  type: ValueType<Value>,
): Value | null {
  const text = textOf(invocation, name);
  return text === null ? null : parsed(type, text, `--${name}`);
}

export const durationFrom = (least: bigint, use: string): ValueType<Duration> => ({
  what: "duration",
  use,
  read: (text) => {
    const span = parseDuration(text);
    return span !== null && span >= least ? span : null;
  },
});
