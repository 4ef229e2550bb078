/** The configuration in force: reloaded on SIGHUP and when a file of it changes, after it has validated; else the last good one stays. */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

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
  readonly reloaded: (config: Config) => void;
  /** Told of each refusal once. */
  readonly rejected: (message: string) => void;
  /** How often the files are looked at; default 2 s. */
  readonly lookMs?: number;
}

export function liveConfig(options: LiveConfigOptions): LiveConfig {
  let current = options.first;
  let refused: string | null = null;
  let seen = stampsOf(current);
  const reload = (): void => {
    seen = stampsOf(current);
    try {
      const next = options.read();
      current = next;
      refused = null;
      seen = stampsOf(next);
      options.reloaded(next);
    } catch (thrown) {
      const message = messageOf(thrown);
      if (message !== refused) options.rejected(message);
      refused = message;
    }
  };
  const watching = setInterval(() => {
    if (stampsOf(current) !== seen) reload();
  }, options.lookMs ?? LOOK_MS);
  return {
    current: () => current,
    refused: () => refused,
    reload,
    stop: () => clearInterval(watching),
  };
}

/** Time, size and identity of every file that counts, so that a replaced one is noticed as well as a changed one. */
const stampsOf = (config: Config): string => config.watched.flatMap(stampsAt).join("\n");

/** A directory does not change when a file in it is written in place, so its files are looked at one by one. */
function stampsAt(path: string): readonly string[] {
  return [path, ...namesIn(path).map((name) => join(path, name))].map(stampOf);
}

/** None for a file, and for a directory that cannot be listed, which the reload says. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).toSorted();
  } catch {
    return [];
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeNs, size, ino, mode } = statSync(path, { bigint: true });
    return `${path} ${mtimeNs} ${size} ${ino} ${mode}`;
  } catch (thrown) {
    return `${path} ${messageOf(thrown)}`;
  }
}
