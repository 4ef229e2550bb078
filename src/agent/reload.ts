/** The configuration in force: what was read at the start or on SIGHUP, merged with what is found on the node. */

import { boundTo, type Config, configOf, differences, type Written } from "../config/config.ts";
import { namedInFull } from "../config/fields.ts";
import type { KubeletOnNode } from "../config/kubelet.ts";
import { shown } from "../config/settings.ts";
import { messageOf } from "../model/errors.ts";

export interface LiveConfig {
  readonly current: () => Config;
  /** How the files differ from what is in force, or why they are invalid; `null`: they do not differ. */
  readonly difference: () => string | null;
  /** Reads the files and loads them if they are valid; on SIGHUP. */
  readonly reload: () => void;
}

export interface LiveConfigOptions {
  readonly first: Written;
  /** Reads files, environment and flags. Throws `ConfigError`. */
  readonly read: () => Written;
  /** The kubelet as last found. The same object if its settings are the same. */
  readonly kubelet: () => KubeletOnNode | null;
  /** Whether the process is connected, which binds the sockets. */
  readonly connected: () => boolean;
  readonly reloaded: (config: Config) => void;
  readonly rejected: (message: string) => void;
  /** Called when the kubelet's settings changed a value. */
  readonly followed: (config: Config) => void;
}

export function liveConfig(options: LiveConfigOptions): LiveConfig {
  let written = options.first;
  let latest = {
    written,
    kubelet: options.kubelet(),
    config: configOf(written, options.kubelet()),
  };
  const current = (): Config => {
    const kubelet = options.kubelet();
    if (latest.written === written && latest.kubelet === kubelet) return latest.config;
    const before = latest;
    latest = { written, kubelet, config: configOf(written, kubelet) };
    if (before.written === written && hardOf(before.config) !== hardOf(latest.config))
      options.followed(latest.config);
    return latest.config;
  };
  return {
    current,
    difference: () => {
      try {
        const found = options.read();
        const { waiting } = boundTo(written, found, options.connected());
        const changed = differences(written, found).map(
          (name) =>
            `${namedInFull(name)} is ${shown(written.settings, name)} in force and ${shown(found.settings, name)} as written`,
        );
        if (changed.length === 0) return null;
        const advice = [
          ...(changed.length > waiting.length ? ["run systemctl reload crigc or send SIGHUP"] : []),
          ...(waiting.length > 0 ? [`restart the agent to change ${waiting.join(", ")}`] : []),
        ];
        return `${changed.join("; ")}: ${advice.join(", and ")}`;
      } catch (thrown) {
        return messageOf(thrown);
      }
    },
    reload: () => {
      try {
        written = boundTo(written, options.read(), options.connected());
        options.reloaded(current());
      } catch (thrown) {
        options.rejected(messageOf(thrown));
      }
    },
  };
}

/** The only value whose default derives from the kubelet's. */
const hardOf = (config: Config): string => shown(config, "evictionHard");
