/** The table of commands, in the order of help. Adding one is its file and its line here. */
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { config } from "./config.ts";
import { explain } from "./explain.ts";
import { gc } from "./gc.ts";
import { help } from "./help-command.ts";
import { images } from "./images.ts";
import { plan } from "./plan.ts";
import { run } from "./run.ts";
import { snapshot } from "./snapshot.ts";
import { version } from "./version.ts";

export const commands: readonly Command[] = [
  run,
  gc,
  plan,
  explain,
  images,
  snapshot,
  config,
  completion,
  version,
  help,
];
