/** Beside an agent, the agent runs the command line: sends it over the control socket, and prints what comes back. */

import type { Config } from "../config/config.ts";
import { type FieldName, fieldOf, variablesOf } from "../config/fields.ts";
import { type ConfigInput, loadConfig } from "../config/load.ts";
import { openCommand } from "../engine/client.ts";
import type { Openers } from "../engine/openers.ts";
import { ConfigError, HostError } from "../model/errors.ts";
import { holderWords } from "../node/lock.ts";
import type { CommandLine } from "./args.ts";
import type { World } from "./command.ts";

/** The exit code; `null`: no agent holds the node, so this process runs the command. Throws `HostError`. */
export async function runInAgent(
  line: CommandLine,
  input: ConfigInput,
  world: Pick<World, "stdout" | "stderr" | "screen" | "user" | "signal" | "build" | "open">,
): Promise<number | null> {
  const own = configToFind(input);
  const { runDir, containerRuntimeEndpoint: endpoint } = own.values;
  const { version } = world.build;
  const argv = argvFor(line, own);
  const code = await openCommand({ ...world, runDir, version, endpoint, argv });
  if (code === null) rejectUnreachable(own, await world.open());
  return code;
}

/** The caller's own. */
const OF_CALLER: readonly FieldName[] = ["logging.format", "logging.verbosity", "dryRun", "runDir"];
/** With them what finds the agent, and the node that it must hold. */
const FINDING: readonly FieldName[] = [...OF_CALLER, "stateDir", "containerRuntimeEndpoint"];

/**
 * The caller's own configuration only has to find the agent: flags that contradict it may agree with the agent's, and the
 * files may be broken. Throws `ConfigError`.
 */
export function configToFind(input: ConfigInput): Config {
  try {
    return loadConfig(onlyOf(input, [...FINDING, "config", "configDir"]));
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return loadConfig(withoutFiles(onlyOf(input, FINDING)));
  }
}

/** These settings of the command line and the environment. */
export const onlyOf = (
  { flags, env, reader }: ConfigInput,
  names: readonly FieldName[],
): ConfigInput => ({
  flags: flags.filter(({ name }) => names.includes(name)),
  env: Object.fromEntries(
    names.flatMap((name) => variablesOf(fieldOf(name)).map((it) => [it, env[it]])),
  ),
  reader,
});

export const withoutFiles = (input: ConfigInput): ConfigInput => ({
  ...input,
  reader: { file: () => null, names: () => null },
});

/** No command falls back to a configuration of its own beside a living agent. */
function rejectUnreachable(own: Config, open: Openers): void {
  const holder = open.agentHolding(own);
  if (holder === null) return;
  const { runDir } = own.values;
  throw new HostError(
    "lock",
    `an agent holds ${holder.directory} (${holderWords(holder)}), but none answers for it in ${runDir}; name its --run-dir, free the disk of its run directory, or stop it; a second runtime needs its own --state-dir and --run-dir`,
  );
}

/** The command line in full, with the caller's output settings as flags. */
function argvFor({ command, invocation, flags }: CommandLine, own: Config): readonly string[] {
  const { operands, options } = invocation;
  const words = Array.from(options).flatMap(([name, values]) => {
    if (values.length === 0) return [name.length === 1 ? `-${name}` : `--${name}`];
    return values.map((value) => `--${name}=${value}`);
  });
  const { values } = own;
  return [
    ...command.name.split(" "),
    ...words,
    ...flags
      .filter(({ name }) => !OF_CALLER.includes(name))
      .map(({ written, text }) => `${written}=${text}`),
    `--logging-format=${values["logging.format"]}`,
    `-v=${values["logging.verbosity"]}`,
    ...(values.dryRun ? ["--dry-run"] : []),
    "--",
    ...operands,
  ];
}
