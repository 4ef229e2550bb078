/** Describes a command, for parsing, help and completion, the context it runs in, and how it prints its result. */

import type { Config } from "../config/config.ts";
import { fieldByFlag, type FieldName, fieldOf, placeholderOf } from "../config/fields.ts";
import type { ConfigInput, ConfigReader } from "../config/load.ts";
import type { Environment, FlagText } from "../config/settings.ts";
import type { Openers } from "../engine/openers.ts";
import type { CommandRequest, RunCommand } from "../engine/owner.ts";
import { giveBack } from "../node/process.ts";
import { type JsonObject, jsonPieces, yamlPieces } from "../report/document.ts";
import { clean, type Screen } from "../report/terminal.ts";

interface Argument {
  /** Operands in capitals: `REF`; options without dashes. */
  readonly name: string;
  readonly choices?: readonly string[];
  /** What the shell completes. */
  readonly completes?: "files" | "directories" | "images";
  /** Beginnings of values that the shell offers. */
  readonly proposals?: readonly string[];
  readonly help: string;
}

export interface Operand extends Argument {
  readonly required: boolean;
  readonly repeated?: true;
}

/** An option of one command, a flag of the table, or an option of every command. */
export interface CommandOption extends Argument {
  /** Placeholder of the value; `null`: a switch. */
  readonly placeholder: string | null;
  /** One letter. */
  readonly short?: string;
  /** The setting of a flag. */
  readonly field?: FieldName;
  /** Accepts an empty value; others reject it, because it usually means an unset variable of a script. */
  readonly mayBeEmpty?: true;
  readonly required?: true;
}

export interface Command {
  /** One word, or two in a group: `keep list`. */
  readonly name: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** Full sentences, for help and manual. */
  readonly doc: string;
  readonly operands: readonly Operand[];
  readonly options: readonly CommandOption[];
  /** Of `-o`, which is among the options then; empty: it prints text only. */
  readonly formats: readonly Format[];
  /** Beside an agent, the agent runs it. */
  readonly inAgent?: true;
  /** An option that names a file, into which the caller writes what is printed; `-`: none. */
  readonly callerWrites?: string;
  /** Changes the node or a file, unless `context.dryRun`. */
  readonly changes?: true;
  /** Resolves to the exit code, if it is not 0; throws what `exitOf` knows. */
  readonly run: (context: CommandContext) => Promise<number | void>;
}

export interface Invocation {
  readonly operands: readonly string[];
  /** Values of each given option; empty for a switch. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly output: Format;
}

/** By its usage: `since TIME`, or `once` for a switch. */
export function option(
  usage: string,
  help: string,
  more: Partial<CommandOption> = {},
): CommandOption {
  const [name = "", placeholder = null] = usage.split(" ");
  return { name, placeholder, help, ...more };
}

/** By its usage: `REF`, `REF...` if repeated, `[REF]` if optional. */
export const operand = (usage: string, help: string, more: Partial<Operand> = {}): Operand => ({
  name: usage.replaceAll(/[[\].]/g, ""),
  required: !usage.startsWith("["),
  ...(usage.includes("...") && { repeated: true }),
  help,
  ...more,
});

/** Output formats of a list: `name` prints one name per line. */
export const LIST = ["table", "json", "yaml", "name"] as const;
export const DOCUMENT = ["table", "json", "yaml"] as const;
export type Format = (typeof LIST)[number];

/** Defaults: no operands, no options, text only. */
export const command = ({
  operands = [],
  options = [],
  formats = [],
  ...rest
}: Omit<Command, "operands" | "options" | "formats"> &
  Partial<Pick<Command, "operands" | "options" | "formats">>): Command => {
  const output = {
    name: "output",
    short: "o",
    placeholder: formats.join("|"),
    choices: formats,
    help: `output format [${formats[0]}]; short: -o`,
  };
  return {
    ...rest,
    operands,
    formats,
    options: formats.length > 0 ? [...options, output] : options,
  };
};

/** All options and flags that these commands accept, by name. */
export const acceptedOptions = (commands: readonly Command[]): ReadonlyMap<string, CommandOption> =>
  new Map(
    [...FLAGS, HELP, VERSION, ...commands.flatMap(({ options }) => options)].map((it) => [
      it.name,
      it,
    ]),
  );

const FLAGS = [...fieldByFlag].map(([name, field]): CommandOption => {
  const { type, help } = fieldOf(field);
  const files = type.kind === "endpoint" || type.pathOf === "file";
  const isPath = files || type.kind === "path";
  return {
    name,
    field,
    help,
    placeholder: type.kind === "boolean" ? null : placeholderOf(fieldOf(field)),
    ...(type.kind === "choice" && { choices: type.choices }),
    ...(isPath && { completes: files ? "files" : "directories" }),
  };
});

const HELP: CommandOption = {
  name: "help",
  short: "h",
  placeholder: null,
  help: "help on the command",
};
const VERSION = option("version", "version of crigc");

export const has = (invocation: Invocation, name: string): boolean => invocation.options.has(name);

/** The value of an option, the last one if repeated; `null`: not given. */
export const textOf = (invocation: Invocation, name: string): string | null =>
  invocation.options.get(name)?.at(-1) ?? null;

export interface Build {
  readonly version: string;
  /** "" if unknown. */
  readonly commit: string;
}

/** The process, as main passes it. */
export interface World {
  /** Results. */
  readonly stdout: (text: string) => void;
  /** Everything else. */
  readonly stderr: (text: string) => void;
  /** Properties of stdout; its width is `null` if it is not a terminal. */
  readonly screen: Screen;
  /** Who runs crigc: as sudo names them, else the user's ID. */
  readonly user: string;
  /** Aborts on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly build: Build;
  readonly reader: ConfigReader;
  /** Whether a kubelet with this root directory (`null`: a usual one) is on this node. */
  readonly isBesideKubelet: (rootDir: string | null) => boolean;
  /** Loads the openers, for commands that open anything; `request`: of the command that this agent runs. */
  readonly open: (request?: Pick<CommandRequest, "owner" | "stderr">) => Promise<Openers>;
  /** In an agent that runs a command: how the agent itself was started. */
  readonly agent?: ConfigInput;
}

/** The process, the command line, and the configuration. */
export interface CommandContext extends Omit<World, "open" | "agent">, Invocation {
  readonly open: Openers;
  readonly env: Environment;
  /** For the agent: runs a command line of a request. */
  readonly serve: RunCommand;
  /** A line of the result. */
  readonly say: (text: string) => void;
  /** A line of everything else. */
  readonly note: (text: string) => void;
  /**
   * Read on first use, so that commands without configuration work with a broken file; throws `ConfigError` then.
   * Its warnings are already on stderr.
   */
  readonly config: Config;
  /** Reads flags, environment and files, not a running agent; writes nothing to stderr. Throws `ConfigError`. */
  readonly read: () => Config;
  /** `dryRun` of flags or environment; that of a file applies to `run`, `gc` and `rm` only. Throws `ConfigError`. */
  readonly dryRun: boolean;
  /** What finds the agent, also with broken files; throws `ConfigError` for flags. */
  readonly find: () => Config;
  /** As on the command line. */
  readonly flags: readonly FlagText[];
  /** All commands, for help, completion and the manual. */
  readonly commands: readonly Command[];
}

export const QUIET = option("q", "print only IDs (df: repositories), one per line");

/** `keys`: the first is the default order. */
export const sortOption = (keys: readonly string[]): CommandOption =>
  option("sort KEY", `sort by ${keys.join(", ")} [${keys[0]}]`, { choices: keys });

interface Row {
  readonly id: string;
  readonly name: string;
}

const PIECE_LENGTH = 64 * 1024;

/** Of a document, one after another: at once, the text of a large node takes several times the memory of its plan. */
export async function printPieces(
  { stdout }: CommandContext,
  pieces: Iterable<string>,
): Promise<void> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE_LENGTH) continue;
    stdout(text);
    text = "";
    await giveBack();
  }
  stdout(text);
}

/** Prints a document in the format of `-o`. `table`: rendered from it. `rows`: of a list. */
export async function print<Document extends JsonObject>(
  context: CommandContext,
  {
    document,
    table,
    rows = () => [],
  }: {
    readonly document: Document;
    readonly table: (document: Document, screen: Screen) => string;
    readonly rows?: (document: Document) => readonly Row[];
  },
): Promise<void> {
  const lines = (texts: readonly string[]): void =>
    context.stdout(texts.map((text) => `${clean(text)}\n`).join(""));
  await giveBack();
  if (has(context, "q")) return lines(rows(document).map(({ id }) => id));
  switch (context.output) {
    case "json":
      return printPieces(context, jsonPieces(document));
    case "yaml":
      return printPieces(context, yamlPieces(document));
    case "name":
      return lines(rows(document).map(({ name }) => name));
    case "table":
      return context.stdout(table(document, context.screen));
  }
}
