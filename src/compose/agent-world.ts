/** What the agent is given of its process. */

import type { Config } from "../config/config.ts";
import type { Log } from "../report/log/log.ts";
import type { Process } from "./node.ts";
import type { Systemd } from "./systemd.ts";

export interface AgentWorld {
  readonly self: Process;
  readonly systemd: Systemd;
  readonly build: { readonly version: string; readonly commit: string };
  readonly logOf: (config: Config) => Log;
  /** Calls back on SIGHUP; returns what stops that. */
  readonly onHangup: (listener: () => void) => () => void;
}
