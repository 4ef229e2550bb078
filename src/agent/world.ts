/** The process environment, which main passes to everything that is opened. */

import type { Config } from "../config/config.ts";
import { wallClock } from "../node/clock.ts";
import type { NodeKubelet } from "../node/kubelet/settings.ts";
import type { Screen } from "../report/terminal.ts";
import { Log, type Severity } from "./log.ts";
import type { Systemd } from "./systemd.ts";

export interface Process {
  readonly pid: number;
  readonly userId: number;
  /** Command that starts this program: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
}

export interface World {
  readonly self: Process;
  readonly systemd: Systemd;
  readonly kubelet: NodeKubelet;
  readonly build: { readonly version: string; readonly commit: string };
  /** Calls back on SIGHUP; returns a function that stops it. */
  readonly onHangup: (listener: () => void) => () => void;
  readonly stderr: (text: string) => void;
  /** Prefix of log lines on stderr. */
  readonly logPrefix: (severity: Severity) => string;
  /** Properties of stderr, where progress is drawn. */
  readonly errorScreen: Screen;
}

export const logForm = ({ values }: Config) => ({
  format: values["logging.format"],
  verbosity: values["logging.verbosity"],
});

/** The log on stderr; `before` is called before each line. */
export const logOf = (
  config: Config,
  { stderr, logPrefix }: World,
  before: () => void = () => undefined,
): Log =>
  new Log({
    ...logForm(config),
    sink: (line, severity) => {
      before();
      stderr(`${logPrefix(severity)}${line}\n`);
    },
    now: wallClock,
  });
