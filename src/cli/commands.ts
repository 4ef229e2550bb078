/** The table of commands, in the order of help. Adding one is its file and its line here. */

import { audit } from "./audit.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { config } from "./config.ts";
import { doctor } from "./doctor.ts";
import { explain } from "./explain.ts";
import { gc } from "./gc.ts";
import { help } from "./help-command.ts";
import { history } from "./history.ts";
import { hold } from "./hold.ts";
import { images } from "./images.ts";
import { install } from "./install.ts";
import { keepBaseline } from "./keep-baseline.ts";
import { keepCheck } from "./keep-check.ts";
import { keepList } from "./keep-list.ts";
import { plan } from "./plan.ts";
import { printCommands } from "./print.ts";
import { release } from "./release.ts";
import { report } from "./report.ts";
import { run } from "./run.ts";
import { snapshot } from "./snapshot.ts";
import { status } from "./status.ts";
import { uninstall } from "./uninstall.ts";
import { version } from "./version.ts";

export const commands: readonly Command[] = [
  run,
  gc,
  plan,
  explain,
  images,
  status,
  history,
  report,
  audit,
  snapshot,
  hold,
  release,
  keepList,
  keepCheck,
  keepBaseline,
  doctor,
  config,
  install,
  uninstall,
  ...printCommands,
  completion,
  version,
  help,
];
