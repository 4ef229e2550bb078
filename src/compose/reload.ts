/** The configuration in force: reloaded on SIGHUP, and when a changed file is stable and does not keep less. */

import type { Config } from "../config/config.ts";
import { loosenings } from "../config/loosening.ts";
import type { Look } from "../config/source/look.ts";
import { messageOf } from "../model/errors.ts";

/** How often the files are read. Each read wakes up a sleeping process. */
const LOOK_MS = 5_000;
const SETTLE_MS = 2_000;

export interface LiveConfig {
  readonly current: () => Config;
  /** Why the configuration on disk is not in force; `null`: it is. */
  readonly refused: () => string | null;
  /** Loads the current files, even if they keep less; on SIGHUP. */
  readonly reload: () => void;
  readonly stop: () => void;
}

export interface LiveConfigOptions {
  readonly first: { readonly config: Config; readonly look: Look };
  readonly look: () => Look;
  /** Whether the process is connected, which binds the sockets. */
  readonly connected: () => boolean;
  readonly reloaded: (config: Config) => void;
  /** Called once for each rejected content. */
  readonly rejected: (message: string) => void;
  /** How often the files are read; default 5 s. */
  readonly lookMs?: number;
  /** Delay before a changed file is read again; default 2 s. */
  readonly settleMs?: number;
}

export function liveConfig(options: LiveConfigOptions): LiveConfig {
  let { config: current, look: inForce } = options.first;
  let refused: string | null = null;
  /** What the last read found, if it is not in force. */
  let pending: string | null = null;
  /** Confirmed content that was rejected. */
  let rejected: string | null = null;
  const reject = (found: Look, message: string): void => {
    rejected = found.print;
    if (message !== refused) options.rejected(message);
    refused = message;
  };
  const take = (found: Look, isAsked: boolean): void => {
    try {
      const next = found.load({ running: current, connected: options.connected() });
      const less = isAsked
        ? []
        : loosenings({ config: current, text: inForce.text }, { config: next, text: found.text });
      if (less.length > 0) {
        reject(found, `${less.join("; ")}: send SIGHUP or restart the agent to accept this`);
        return;
      }
      current = next;
      inForce = found;
      refused = null;
      rejected = null;
      options.reloaded(next);
    } catch (thrown) {
      reject(found, messageOf(thrown));
    }
  };
  /** Whether a change waits for confirmation. */
  const check = (): boolean => {
    const found = options.look();
    const settled = found.print === pending;
    pending = found.print;
    if (found.print === inForce.print) {
      refused = null;
      rejected = null;
      return false;
    }
    if (settled && found.print !== rejected) take(found, false);
    return !settled;
  };
  const { lookMs = LOOK_MS, settleMs = SETTLE_MS } = options;
  const watch = (inMs: number) =>
    setTimeout(() => {
      watching = watch(check() ? settleMs : lookMs);
    }, inMs);
  let watching = watch(lookMs);
  return {
    current: () => current,
    refused: () => refused,
    reload: () => take(options.look(), true),
    stop: () => clearTimeout(watching),
  };
}
