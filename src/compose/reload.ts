/** The configuration in force: reloaded on SIGHUP and when a file of it changes, after it has validated; else the last good one stays. */

import { statSync } from "node:fs";

import type { Config } from "../config/config.ts";
import { messageOf } from "../model/errors.ts";

/** How often the files are looked at: a stat of each, which costs nothing that can be measured. */
const LOOK_MS = 2_000;

export interface LiveConfig {
  readonly current: () => Config;
  /** Why the last reload was refused; `null`: what is written is in force. */
  readonly refused: () => string | null;
  /** Reads everything again now; what SIGHUP asks for. */
  readonly reload: () => void;
  readonly stop: () => void;
}

export interface LiveConfigOptions {
  readonly first: Config;
  /** Throws `ConfigError` where what is written is wrong. */
  readonly read: () => Config;
  /** Told after each reload that took. */
  readonly reloaded: (config: Config, before: Config) => void;
  /** Told of each refusal once. */
  readonly rejected: (message: string) => void;
}

export function liveConfig(options: LiveConfigOptions): LiveConfig {
  let current = options.first;
  let refused: string | null = null;
  let seen = stampsOf(current);
  const reload = (): void => {
    seen = stampsOf(current);
    try {
      const next = options.read();
      const before = current;
      current = next;
      refused = null;
      seen = stampsOf(next);
      options.reloaded(next, before);
    } catch (thrown) {
      const message = messageOf(thrown);
      if (message !== refused) options.rejected(message);
      refused = message;
    }
  };
  const watching = setInterval(() => {
    if (stampsOf(current) !== seen) reload();
  }, LOOK_MS);
  return {
    current: () => current,
    refused: () => refused,
    reload,
    stop: () => clearInterval(watching),
  };
}

/** Time, size and identity of every file that counts, so that a replaced one is noticed as well as a changed one. */
function stampsOf(config: Config): string {
  return config.watched
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false, bigint: true });
      return found === undefined
        ? `${path} absent`
        : `${path} ${found.mtimeNs} ${found.size} ${found.ino} ${found.mode}`;
    })
    .join("\n");
}
