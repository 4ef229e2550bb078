/** What a command is called, what may stand behind it, and what it says of itself: parsing, help and completion read this. */

export interface Operand {
  /** In capitals: `REF`. */
  readonly name: string;
  readonly required: boolean;
  readonly repeated?: true;
  readonly choices?: readonly string[];
  readonly help: string;
}

/** An option of one command, beside the flags of the table. */
export interface CommandOption {
  /** Without dashes. */
  readonly name: string;
  /** What stands for the value; `null`: a switch. */
  readonly placeholder: string | null;
  readonly choices?: readonly string[];
  /** What the shell completes. */
  readonly completes?: "file" | "directory";
  /** An empty value means something; else it is refused as that of a script whose variable is not set. */
  readonly mayBeEmpty?: true;
  readonly help: string;
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
  /** It changes nothing, on the node or in a file. A command that does obeys `dryRun` of its context. */
  readonly readOnly: boolean;
  /** Its text is JSON whatever was asked for. */
  readonly alwaysJson?: true;
}

/** What stands behind the command on this command line. */
export interface Invocation {
  readonly operands: readonly string[];
  /** The texts of each option that was given; a switch has none. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly output: "table" | "json";
}

/** Whether an option was given. */
export const has = (invocation: Invocation, name: string): boolean => invocation.options.has(name);

/** The text of an option, the last one where it was given again; `null`: not given. */
export const textOf = (invocation: Invocation, name: string): string | null =>
  invocation.options.get(name)?.at(-1) ?? null;
