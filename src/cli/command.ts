/** The description of a command, which parsing, help and completion read, and the context it runs in. */

import type { Config } from "../config/config.ts";
import type { ConfigReader } from "../config/load.ts";
import type { Environment } from "../config/source/arguments.ts";
import type { Look } from "../config/source/look.ts";
import type { Screen } from "../report/terminal.ts";
import type { Openers } from "./openers.ts";

interface Argument {
  /** Of an operand in capitals: `REF`; of an option without dashes. */
  readonly name: string;
  readonly choices?: readonly string[];
  /** What the shell completes. */
  readonly completes?: "file" | "directory";
  readonly help: string;
}

export interface Operand extends Argument {
  readonly required: boolean;
  readonly repeated?: true;
}

/** An option of one command, in addition to the flags of the table. */
export interface CommandOption extends Argument {
  /** What stands for the value; `null`: a switch. */
  readonly placeholder: string | null;
  /** An empty value means something; else it is refused as that of a script whose variable is not set. */
  readonly mayBeEmpty?: true;
  readonly required?: true;
}

export interface CommandWords {
  /** One word, or two where commands belong together: `keep list`. */
  readonly name: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** Whole sentences, for its help and the manual. */
  readonly doc: string;
  readonly operands: readonly Operand[];
  readonly options: readonly CommandOption[];
  /** Whether it answers as a table and as JSON; else it writes text, and takes no `-o`. */
  readonly json: boolean;
  /** Its answer is a list, which is printed in more formats. */
  readonly list?: true;
  /** It changes nothing, on the node or in a file. A command that does obeys `dryRun` of its context. */
  readonly readOnly: boolean;
  /** It speaks of crigc itself, and opens nothing. */
  readonly ofItself?: true;
  /** SIGHUP reloads its configuration; any other command ends by it as by SIGTERM. */
  readonly reloads?: true;
  /** Its text is JSON whatever was asked for. */
  readonly alwaysJson?: true;
}

/** The arguments after the command. */
export interface Invocation {
  readonly operands: readonly string[];
  /** The texts of each option that was given; a switch has none. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly output: Format;
}

/** By its usage: `since TIME`, or `once` for a switch. */
export function option(
  usage: string,
  help: string,
  more: Pick<CommandOption, "choices" | "completes" | "mayBeEmpty" | "required"> = {},
): CommandOption {
  const [name = "", placeholder = null] = usage.split(" ");
  return { name, placeholder, help, ...more };
}

/** Of commands whose table may be long. */
export const ALL_OPTION = option("all", "list every row of a long table");

/** Where the table of a command goes, with `--all` as it was given. */
export const screenFor = (
  { screen }: Pick<World, "screen">,
  { options }: Pick<Invocation, "options">,
): Screen => (options.has(ALL_OPTION.name) ? { ...screen, all: true } : screen);

/** Output formats: `wide` is a table that is not truncated, `name` one name per line. */
export const LIST_FORMATS = ["table", "wide", "json", "yaml", "name"] as const;
export type Format = (typeof LIST_FORMATS)[number];

/** The formats of a command's `-o`; empty: it prints text only. */
export const formatsOf = ({ json, list }: CommandWords): readonly Format[] =>
  list === true ? LIST_FORMATS : json ? ["table", "json"] : [];

/** Whether an option was given. */
export const has = (invocation: Invocation, name: string): boolean => invocation.options.has(name);

/** The value of an option, the last one if repeated; `null`: not given. */
export const textOf = (invocation: Invocation, name: string): string | null =>
  invocation.options.get(name)?.at(-1) ?? null;

export interface Command extends CommandWords {
  /** Resolves to the exit code; throws what `exitOf` knows. */
  readonly run: (context: CommandContext, invocation: Invocation) => Promise<number>;
}

/** Most commands have no operands, no options of their own, and print text only. */
export const command = (
  words: Omit<Command, "operands" | "options" | "json"> &
    Partial<Pick<Command, "operands" | "options" | "json">>,
): Command => ({ operands: [], options: [], json: false, ...words });

export interface Build {
  readonly version: string;
  /** "" where it is not known. */
  readonly commit: string;
}

/** The process, as main fills it. */
export interface World {
  /** The answer. */
  readonly stdout: (text: string) => void;
  /** A long answer, no faster than it is read. */
  readonly stdoutPieces: (pieces: Iterable<string>) => Promise<void>;
  /** The story. */
  readonly stderr: (text: string) => void;
  /** What stdout is; its width is `null` where it is no terminal. */
  readonly screen: Screen;
  /** Aborts on SIGINT and SIGTERM, and on SIGHUP once `stopOnHangup` was called. */
  readonly signal: AbortSignal;
  readonly stopOnHangup: () => void;
  readonly build: Build;
  readonly reader: ConfigReader;
  /** Loads what opens the machine, for a command that opens anything. */
  readonly open: () => Promise<Openers>;
}

export interface CommandContext extends Omit<World, "open"> {
  readonly open: Openers;
  readonly env: Environment;
  /**
   * Read at the first use, so that a command that needs none works beside a broken file; throws `ConfigError` then.
   * Its warnings have been written to stderr.
   */
  readonly config: Config;
  /** Reads flags, environment and files anew; nothing is written to stderr. */
  readonly look: () => Look;
  /** Whether flag or environment ask to change nothing; a file says so for `run` and `gc` alone. Throws `ConfigError`. */
  readonly dryRun: boolean;
  /** What this command line says over the defaults, itself and in the files that it names; nothing else of this machine. Throws `ConfigError`. */
  readonly given: () => Config;
  /** The same without any file. */
  readonly flagsAlone: () => Config;
  /** Every command there is, for help, completion and the manual. */
  readonly commands: readonly CommandWords[];
}
