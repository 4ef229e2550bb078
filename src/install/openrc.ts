/** The OpenRC service of the agent, for Alpine and others. */

import { ENGINE_ENVIRONMENT } from "./engine.ts";
import { filled } from "./template.ts";
import template from "./templates/openrc-script.txt" with { type: "text" };

export interface ScriptOptions {
  readonly executable: string;
  /** Arguments of `run`. */
  readonly flags?: readonly string[];
}

/** supervise-daemon restarts the agent when it exits; its log goes to the system log. */
export const openrcScript = ({ executable, flags = [] }: ScriptOptions): string =>
  filled(template, {
    executable,
    arguments: ["run", ...flags.map(quoted)].join(" "),
    engine: ENGINE_ENVIRONMENT.map(([name, value]) => `export ${name}=${value}\n`).join(""),
  });

/** Variable of the service: the first start keeps the images present. */
export const openrcSettings = `# Written by "crigc install --baseline".
crigc_baseline=yes
`;

/** One shell word, escaped for double quotes that are evaluated twice. */
const quoted = (word: string): string =>
  /^[\w@:,./=+-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`.replace(/["$`\\]/g, "\\$&");
