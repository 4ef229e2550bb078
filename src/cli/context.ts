/** What a command is given: the configuration, where to write, and what the process is. */
import type { Environment } from "../config/arguments.ts";
import type { Config } from "../config/config.ts";
import type { ConfigReader } from "../config/load.ts";
import type { Screen } from "../report/terminal.ts";
import type { Openers } from "./openers.ts";
import type { CommandWords } from "./words.ts";

export interface Build {
  readonly version: string;
  /** "" where it is not known. */
  readonly commit: string;
}

/** The process, as main fills it. */
export interface World {
  /** The answer. */
  readonly stdout: (text: string) => void;
  /** The story. */
  readonly stderr: (text: string) => void;
  /** What stdout is; its width is `null` where it is no terminal. */
  readonly screen: Screen;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  readonly build: Build;
  readonly reader: ConfigReader;
  readonly open: Openers;
}

export interface CommandContext extends World {
  readonly env: Environment;
  /**
   * Read at the first use, so that a command that needs none works beside a broken file; throws `ConfigError` then.
   * Its warnings have been written to stderr.
   */
  readonly config: Config;
  /**
   * Reads flags, environment and files again, and says nothing; what is bound to the process stays as it was read first,
   * and once it is connected, what is bound to its connection. Throws `ConfigError`.
   */
  readonly reload: (connected: boolean) => Config;
  /** Whether flag or environment ask to change nothing; a file says so for `run` and `gc` alone. Throws `ConfigError`. */
  readonly dryRun: boolean;
  /** What this command line says over the defaults: no file and no variable of this machine. Throws `ConfigError`. */
  readonly given: () => Config;
  /** Every command there is, for help, completion and the manual. */
  readonly commands: readonly CommandWords[];
}
