/** The table of commands, in the order of help. */

import type { Command } from "./command.ts";
import { hold, release, run, status } from "./commands/agent.ts";
import { config } from "./commands/config.ts";
import { doctor } from "./commands/doctor.ts";
import { fleet } from "./commands/fleet.ts";
import { gc, rm } from "./commands/gc.ts";
import { history } from "./commands/history.ts";
import { install, uninstall } from "./commands/install.ts";
import { completion, help, version } from "./commands/itself.ts";
import { keepBaseline, keepMissing } from "./commands/keep-baseline.ts";
import { keepAdd, keepRemove } from "./commands/keep-edit.ts";
import { keepCheck, keepList, keepTest } from "./commands/keep.ts";
import { audit, df, images } from "./commands/node.ts";
import { explain, plan, snapshot } from "./commands/plan.ts";
import { printCommands } from "./commands/print.ts";
import { report } from "./commands/report.ts";
import { simulate } from "./commands/simulate.ts";

export const commands: readonly Command[] = [
  run,
  gc,
  plan,
  rm,
  explain,
  images,
  df,
  status,
  history,
  report,
  audit,
  snapshot,
  fleet,
  simulate,
  hold,
  release,
  keepList,
  keepCheck,
  keepAdd,
  keepRemove,
  keepTest,
  keepBaseline,
  keepMissing,
  doctor,
  config,
  install,
  uninstall,
  ...printCommands,
  completion,
  version,
  help,
];
