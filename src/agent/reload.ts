/** The configuration in force: what was read at the start or on SIGHUP, merged with what is found on the node. */

import { boundTo, type Config, configOf, differences, type Written } from "../config/config.ts";
import { namedInFull } from "../config/fields.ts";
import type { KubeletOnNode } from "../config/kubelet.ts";
import { shown } from "../config/settings.ts";
import { messageOf } from "../model/errors.ts";

export class LiveConfig {
  readonly #read: () => Written;
  readonly #kubelet: () => KubeletOnNode | null;
  readonly #followed: (config: Config) => void;
  #written: Written;
  #latest: { readonly kubelet: KubeletOnNode | null; readonly config: Config };
  /** Once the process is connected, its sockets are bound. */
  isConnected = false;

  /**
   * `kubelet`: as last found; the same object if its settings are the same. `followed` is called when they changed a
   * value.
   */
  constructor(
    { first, read }: { readonly first: Written; readonly read: () => Written },
    kubelet: () => KubeletOnNode | null,
    followed: (config: Config) => void,
  ) {
    this.#read = read;
    this.#kubelet = kubelet;
    this.#followed = followed;
    this.#written = first;
    this.#latest = this.#merged(first);
  }

  readonly current = (): Config => {
    const before = this.#latest;
    if (before.kubelet === this.#kubelet()) return before.config;
    this.#latest = this.#merged(this.#written);
    const { config } = this.#latest;
    // The only value whose default derives from the kubelet's.
    if (shown(before.config, "evictionHard") !== shown(config, "evictionHard"))
      this.#followed(config);
    return config;
  };

  /** How the files differ from what is in force, or why they are invalid; `null`: they do not differ. */
  readonly difference = (): string | null => {
    const written = this.#written;
    try {
      const found = this.#read();
      const { waiting } = boundTo(written, found, this.isConnected);
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
  };

  /** Reads the files and loads them if they are valid; on SIGHUP. Throws `ConfigError`, and keeps what is in force. */
  reload(): Config {
    const written = boundTo(this.#written, this.#read(), this.isConnected);
    this.#latest = this.#merged(written);
    this.#written = written;
    return this.#latest.config;
  }

  #merged(written: Written): { readonly kubelet: KubeletOnNode | null; readonly config: Config } {
    const kubelet = this.#kubelet();
    return { kubelet, config: configOf(written, kubelet) };
  }
}
