/** From the command line to the exit code: `main` without the process; and the table of commands. */

import type { Openers } from "../agent/openers.ts";
import { type AgentAnswer, parseAgentAnswer, type RunningAgent } from "../config/agent.ts";
import { type Config, configOf } from "../config/config.ts";
import { variablesOf } from "../config/field.ts";
import { type FieldName, fieldOf } from "../config/fields.ts";
import {
  checkFlags,
  type ConfigInput,
  type ConfigReader,
  loadConfig,
  readWritten,
} from "../config/load.ts";
import type { Environment, FlagText } from "../config/settings.ts";
import { assert, ConfigError, HostError, messageOf } from "../model/errors.ts";
import { durationFromMs } from "../model/time.ts";
import { once } from "../model/values.ts";
import { codeOf } from "../node/files.ts";
import { endpointHash } from "../node/lock.ts";
import { clean } from "../report/terminal.ts";
import { parseCommandLine } from "./args.ts";
import { type Command, type CommandContext, has, type Invocation, type World } from "./command.ts";
import { config, hold, release, run, status } from "./commands/agent.ts";
import { doctor } from "./commands/doctor.ts";
import { gc, rm } from "./commands/gc.ts";
import { history } from "./commands/history.ts";
import { install, uninstall } from "./commands/install.ts";
import { completion, help, version, versionAnswer } from "./commands/itself.ts";
import { keepBaseline, keepList, keepTest } from "./commands/keep.ts";
import { df, images } from "./commands/node.ts";
import { explain, plan, snapshot } from "./commands/plan.ts";
import { print } from "./commands/print.ts";
import { report } from "./commands/report.ts";
import { exit, exitOf } from "./exit.ts";
import { completions } from "./help/complete.ts";
import { helpOn } from "./help/help.ts";

export async function dispatch(
  argv: readonly string[],
  env: Environment,
  world: World,
): Promise<number> {
  try {
    // Not in the table, because only completion scripts call it.
    if (argv[0] === "__complete") {
      world.stdout(completions(argv.slice(1), commands));
      return exit.done;
    }
    const parsed = parseCommandLine(argv, commands);
    switch (parsed.kind) {
      case "help":
        world.stdout(helpOn(parsed.topic, commands, world.screen));
        return exit.done;
      case "version":
        world.stdout(versionAnswer(world.build, parsed.output));
        return exit.done;
      case "nothing":
        world.stderr(helpOn("", commands, world.screen));
        return exit.usage;
      case "run": {
        const { command, invocation, flags } = parsed;
        // There it is a failed check.
        if (command.name !== "doctor") checkFlags(flags);
        const open = command.ofItself === true ? null : await world.open();
        const input = { flags, env, reader: world.reader };
        const asks = open !== null && asksAgent(command.name, invocation);
        const agent = asks ? await runningAgent(open, input, world.stderr) : null;
        const context = contextOf({ ...world, ...invocation }, open, { ...input, agent });
        return (await command.run(context)) ?? exit.done;
      }
    }
  } catch (thrown) {
    world.stderr(errorText(thrown));
    return exitOf(thrown) ?? exit.internal;
  }
}

/** `open`: `null` if the command opens nothing. */
function contextOf(
  world: Omit<World, "open"> & Invocation,
  open: Openers | null,
  input: ConfigInput,
): CommandContext {
  const { flags, env, reader } = input;
  const varied = (more: readonly FlagText[]): Config => {
    return configOf(readWritten({ ...input, flags: [...flags, ...more] }), world.isBesideKubelet);
  };
  const alone = (name: FieldName): Config => {
    const variables = variablesOf(fieldOf(name)).map((it) => [it, env[it]]);
    return loadConfig({
      flags: flags.filter((it) => it.name === name),
      env: Object.fromEntries(variables),
      reader: { file: () => null, names: () => null },
    });
  };
  const note = (text: string): void => world.stderr(`crigc: ${clean(text)}\n`);
  const loaded = once(() => {
    const merged = varied([]);
    for (const warning of merged.warnings) note(`warning: ${warning}`);
    return merged;
  });
  return {
    ...world,
    get open(): Openers {
      assert(open !== null, "a command of itself opens nothing");
      return open;
    },
    env,
    agent: input.agent ?? null,
    commands,
    say: (text) => world.stdout(`${clean(text)}\n`),
    note,
    read: () => configOf(readWritten({ flags, env, reader }), world.isBesideKubelet),
    alone,
    flags,
    varied,
    given: () => loadConfig({ flags, env: {}, reader: namedAlone(flags, reader) }),
    get dryRun(): boolean {
      return alone("dryRun").values.dryRun;
    },
    get config(): Config {
      return loaded();
    },
  };
}

/** Only the files that the command line names, not the default ones. */
function namedAlone(flags: readonly FlagText[], reader: ConfigReader): ConfigReader {
  const named = (name: FieldName): string | undefined =>
    flags.findLast((flag) => flag.name === name)?.text;
  const [file, directory] = [named("config"), named("configDir")];
  return {
    file: (path) =>
      path === file || (directory !== undefined && path.startsWith(`${directory}/`))
        ? reader.file(path)
        : null,
    names: (path) => (path === directory ? reader.names(path) : null),
  };
}

/** Commands that run an agent, or are about another machine, do not ask a running one. */
const asksAgent = (name: string, invocation: Invocation): boolean =>
  !["run", "status", "install", "uninstall"].includes(name) &&
  !name.startsWith("print ") &&
  !has(invocation, "check");

/** What finds an agent, and tells whether it is the one of the given runtime. */
const FINDING: readonly FieldName[] = ["config", "configDir", "runDir", "containerRuntimeEndpoint"];

/** A healthy agent answers within milliseconds. */
const ANSWER_MS = 2_000;

/** No listener. Without permission there may be one, with other thresholds. */
const SILENT: readonly string[] = ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket"];

/**
 * The running agent's values, so that other commands use the same thresholds and directories. `null`: no agent is
 * running, or it cannot be queried; the latter prints a note.
 */
async function runningAgent(
  open: Openers,
  input: ConfigInput,
  stderr: World["stderr"],
): Promise<RunningAgent | null> {
  // Flags that contradict this command's own configuration may agree with the agent's.
  const found = input.flags.filter(({ name }) => FINDING.includes(name));
  const own = validOrNull(input) ?? validOrNull({ ...input, flags: found });
  if (own === null) return null;
  const note = (text: string): void => stderr(`crigc: note: ${clean(text)}\n`);
  try {
    const answer = parseAgentAnswer(JSON.parse(await open.askAgent(own, "/status", ANSWER_MS)));
    if (answer === null) return null;
    const other = otherRuntime(own, answer);
    if (other !== null) {
      note(`the running agent serves ${other}; using the configuration of this command`);
      return null;
    }
    const { values, pressure, rootDirectoryId } = answer;
    const { bootId, uptimeMs } = answer;
    if (bootId !== undefined && uptimeMs !== undefined)
      open.adoptBoot({ bootId, uptime: durationFromMs(uptimeMs) });
    const isContained = rootDirectoryId !== null && rootDirectoryId !== open.rootDirectoryId();
    return { values, pressure, isContained };
  } catch (thrown) {
    if (!(thrown instanceof HostError) && !(thrown instanceof SyntaxError)) throw thrown;
    const why =
      thrown instanceof HostError ? thrown.message : "the running agent's answer is not JSON";
    if (!SILENT.includes(codeOf(thrown.cause)))
      note(`${why}; using this command's own configuration`);
    return null;
  }
}

/** `null`: invalid configuration, which the command will report. */
function validOrNull(input: ConfigInput): Config | null {
  try {
    return loadConfig(input);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return null;
    throw thrown;
  }
}

/**
 * A command for another socket is not about the agent's node. The agent's is the one that answered it, else the
 * configured one; one socket may have several names.
 */
function otherRuntime({ values: own }: Config, { runtime, values }: AgentAnswer): string | null {
  const ours = own.containerRuntimeEndpoint;
  const theirs = runtime?.endpoint ?? values["containerRuntimeEndpoint"]?.value;
  if (ours === null || typeof theirs !== "string") return null;
  return endpointHash(ours) === endpointHash(theirs) ? null : theirs;
}

/** One line per error; a bug is printed with its stack. */
function errorText(thrown: unknown): string {
  if (thrown instanceof ConfigError)
    return (
      thrown.issues
        // Errors of the command line have the command itself as source.
        .map(({ source, message }) => `${clean(`${source}: ${message}`)}\n`)
        .map((line) => (/^crigc[: ]/.test(line) ? line : `crigc: ${line}`))
        .join("")
    );
  const message = `crigc: ${clean(messageOf(thrown))}\n`;
  if (exitOf(thrown) !== null) return message;
  const lines = thrown instanceof Error ? (thrown.stack ?? "").split("\n") : [];
  const stack = lines
    .filter((line) => line !== "")
    .map((line) => `${clean(line)}\n`)
    .join("");
  return `crigc: internal error, please report it with these lines: ${clean(messageOf(thrown))}\n${stack}`;
}

/** In the order of help. */
export const commands: readonly Command[] = [
  run,
  gc,
  plan,
  rm,
  explain,
  images,
  df,
  status,
  history,
  report,
  snapshot,
  hold,
  release,
  keepList,
  keepTest,
  keepBaseline,
  doctor,
  config,
  install,
  uninstall,
  print,
  completion,
  version,
  help,
];
