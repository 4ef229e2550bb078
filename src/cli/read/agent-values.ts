/** The running agent's configuration, so that other commands use the same thresholds and directories. */

import type { Config } from "../../config/config.ts";
import type { AgentValues } from "../../config/source/agent-layer.ts";
import type { Look } from "../../config/source/look.ts";
import { codeOf } from "../../host/files/errno.ts";
import { endpointHash } from "../../host/state/lock-file.ts";
import { ConfigError, HostError } from "../../model/errors.ts";
import { isMap } from "../../model/values.ts";
import { clean } from "../../report/terminal.ts";
import { type CommandContext, has, type Invocation } from "../command.ts";

/** A healthy agent answers within milliseconds. */
const ANSWER_MS = 2_000;

/** Commands that run an agent, or are about another machine. */
const WITHOUT_AGENT: readonly string[] = ["run", "status", "install", "uninstall"];

/** `null`: no agent is running, or it cannot be queried; the latter prints a note. */
export async function agentValues(
  world: Pick<CommandContext, "open" | "stderr">,
  look: () => Look,
  command: { readonly name: string; readonly invocation: Invocation },
): Promise<AgentValues | null> {
  const { name, invocation } = command;
  if (
    WITHOUT_AGENT.includes(name) ||
    name.startsWith("print ") ||
    ["snapshot", "check"].some((it) => has(invocation, it))
  )
    return null;
  const own = loaded(look());
  if (own === null) return null;
  try {
    const status: unknown = JSON.parse(await world.open.askAgent(own, "/status", ANSWER_MS));
    const values = valuesIn(status);
    const other = values === null ? null : otherRuntime(own, endpointIn(status, values));
    if (other === null) return values;
    world.stderr(
      `crigc: note: the running agent serves ${clean(other)}; using the configuration of this command\n`,
    );
    return null;
  } catch (thrown) {
    if (!(thrown instanceof HostError) && !(thrown instanceof SyntaxError)) throw thrown;
    const why =
      thrown instanceof HostError ? thrown.message : "the running agent's answer is not JSON";
    if (!SILENT.includes(codeOf(thrown.cause)))
      world.stderr(`crigc: note: ${clean(why)}; using this command's own configuration\n`);
    return null;
  }
}

/** No listener. Without permission there may be one, with other thresholds. */
const SILENT: readonly string[] = ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket"];

/** `null`: invalid configuration, which the command will report. */
function loaded(look: Look): Config | null {
  try {
    return look.load();
  } catch (thrown) {
    if (thrown instanceof ConfigError) return null;
    throw thrown;
  }
}

function valuesIn(status: unknown): AgentValues | null {
  const values = isMap(status) ? status["values"] : null;
  const isValue = (it: unknown): boolean =>
    isMap(it) && "value" in it && typeof it["source"] === "string";
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value was looked at
  return isMap(values) && Object.values(values).every(isValue) ? (values as AgentValues) : null;
}

/** The agent's socket: the one that answered it, else the configured one. */
function endpointIn(status: unknown, { containerRuntimeEndpoint: told }: AgentValues): unknown {
  const runtime = isMap(status) ? status["runtime"] : null;
  return (isMap(runtime) ? runtime["endpoint"] : null) ?? told?.value;
}

/** A command for another socket is not about the agent's node. One socket may have several names. */
function otherRuntime({ endpoints: { runtime } }: Config, theirs: unknown): string | null {
  if (runtime === null || typeof theirs !== "string") return null;
  return endpointHash(runtime) === endpointHash(theirs) ? null : theirs;
}
