/** The running agent's configuration, so that other commands use the same thresholds and directories. */

import { type AgentAnswer, parseAgentAnswer, type RunningAgent } from "../../config/agent.ts";
import { type Config, configOf } from "../../config/config.ts";
import type { Written } from "../../config/written.ts";
import { ConfigError, HostError } from "../../model/errors.ts";
import { codeOf } from "../../node/files.ts";
import { endpointHash } from "../../node/lock.ts";
import { clean } from "../../report/terminal.ts";
import { type CommandContext, has, type Invocation } from "../command.ts";

/** A healthy agent answers within milliseconds. */
const ANSWER_MS = 2_000;

/** Commands that run an agent, or are about another machine. */
const WITHOUT_AGENT: readonly string[] = ["run", "status", "install", "uninstall"];

/** `null`: no agent is running, or it cannot be queried; the latter prints a note. */
export async function runningAgent(
  world: Pick<CommandContext, "open" | "stderr">,
  read: () => Written,
  command: { readonly name: string; readonly invocation: Invocation },
): Promise<RunningAgent | null> {
  const { name, invocation } = command;
  if (
    WITHOUT_AGENT.includes(name) ||
    name.startsWith("print ") ||
    ["snapshot", "check"].some((it) => has(invocation, it))
  )
    return null;
  const own = validOrNull(read);
  if (own === null) return null;
  const note = (text: string): void => world.stderr(`crigc: note: ${clean(text)}\n`);
  try {
    const answer = parseAgentAnswer(
      JSON.parse(await world.open.askAgent(own, "/status", ANSWER_MS)),
    );
    if (answer === null) return null;
    const other = otherRuntime(own, answer);
    if (other !== null) {
      note(`the running agent serves ${other}; using the configuration of this command`);
      return null;
    }
    const { values, configurationError, rootDirectoryId } = answer;
    if (configurationError !== null)
      note(`the agent's configuration files differ from what is in force: ${configurationError}`);
    const isContained =
      rootDirectoryId !== null && rootDirectoryId !== world.open.rootDirectoryId();
    return { values, isContained };
  } catch (thrown) {
    if (!(thrown instanceof HostError) && !(thrown instanceof SyntaxError)) throw thrown;
    const why =
      thrown instanceof HostError ? thrown.message : "the running agent's answer is not JSON";
    if (!SILENT.includes(codeOf(thrown.cause)))
      note(`${why}; using this command's own configuration`);
    return null;
  }
}

/** No listener. Without permission there may be one, with other thresholds. */
const SILENT: readonly string[] = ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket"];

/** `null`: invalid configuration, which the command will report. */
function validOrNull(read: () => Written): Config | null {
  try {
    return configOf(read(), null);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return null;
    throw thrown;
  }
}

/**
 * A command for another socket is not about the agent's node. The agent's is the one that answered it, else the
 * configured one; one socket may have several names.
 */
function otherRuntime({ endpoints }: Config, { runtime, values }: AgentAnswer): string | null {
  const theirs = runtime?.endpoint ?? values["containerRuntimeEndpoint"]?.value;
  if (endpoints.runtime === null || typeof theirs !== "string") return null;
  return endpointHash(endpoints.runtime) === endpointHash(theirs) ? null : theirs;
}
