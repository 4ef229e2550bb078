/** The table of commands, in the order of help. Adding one is its file and its line here. */
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { config } from "./config.ts";
import { help } from "./help-command.ts";
import { version } from "./version.ts";

export const commands: readonly Command[] = [config, completion, version, help];
