/** A command: its words, and what it does. */
import type { CommandContext } from "./context.ts";
import type { CommandWords, Invocation } from "./words.ts";

export interface Command extends CommandWords {
  /** Resolves to the exit code; throws what `exitOf` knows. */
  readonly run: (context: CommandContext, invocation: Invocation) => Promise<number>;
}
