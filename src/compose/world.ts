/** The process environment, as main passes it once to everything that is opened. */

import type { Config } from "../config/config.ts";
import type { Kubelet } from "../host/kubelet/settings.ts";
import { wallClock } from "../host/time/clock.ts";
import type { Severity } from "../report/log/line.ts";
import { createLog, type Log } from "../report/log/log.ts";
import type { Screen } from "../report/terminal.ts";
import type { Systemd } from "./systemd.ts";

export interface Process {
  readonly pid: number;
  readonly userId: number;
  /** What starts this program again: the executable, or Bun and the entry point. */
  readonly program: readonly string[];
}

export interface World {
  readonly self: Process;
  readonly systemd: Systemd;
  /** For the configuration and for one look; `null`: this node has none. */
  readonly kubelet: () => Kubelet | null;
  readonly build: { readonly version: string; readonly commit: string };
  /** Calls back on SIGHUP; returns what stops that. */
  readonly onHangup: (listener: () => void) => () => void;
  readonly stderr: (text: string) => void;
  /** What begins a line of the log on stderr. */
  readonly logPrefix: (severity: Severity) => string;
  /** What stderr is: progress is drawn there. */
  readonly errorScreen: Screen;
}

/** The log on stderr; `before` is called before each line. */
export const logOf = (
  { logging }: Config,
  { stderr, logPrefix }: World,
  before: () => void = () => undefined,
): Log =>
  createLog({
    ...logging,
    sink: (line, severity) => {
      before();
      stderr(`${logPrefix(severity)}${line}\n`);
    },
    now: wallClock,
  });
