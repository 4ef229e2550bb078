/** From the command line to the exit code: `main` without the process; and the table of commands. */

import { type Config, configOf, processIssues, throwIfAny } from "../config/config.ts";
import {
  checkFlags,
  type ConfigInput,
  loadConfig,
  readWritten,
  rememberedReader,
} from "../config/load.ts";
import type { Environment } from "../config/settings.ts";
import type { Openers } from "../engine/openers.ts";
import type { RunCommand } from "../engine/owner.ts";
import { ConfigError, messageOf, usageError } from "../model/errors.ts";
import { once } from "../model/values.ts";
import { clean } from "../report/terminal.ts";
import { type CommandLine, parseCommandLine } from "./args.ts";
import {
  type Command,
  type CommandContext,
  type Invocation,
  textOf,
  type World,
} from "./command.ts";
import { config, hold, release, run, status } from "./commands/agent.ts";
import { doctor } from "./commands/doctor.ts";
import { gc, rm } from "./commands/gc.ts";
import { history } from "./commands/history.ts";
import { install, uninstall } from "./commands/install.ts";
import { completion, help, printFile, version } from "./commands/itself.ts";
import { keepBaseline, keepList, keepTest } from "./commands/keep.ts";
import { df, images } from "./commands/node.ts";
import { explain, plan, snapshot } from "./commands/plan.ts";
import { report } from "./commands/report.ts";
import { exit, exitOf } from "./exit.ts";
import { completions } from "./help/complete.ts";
import { helpOn } from "./help/help.ts";
import { configToFind, onlyOf, runInAgent, withoutFiles } from "./relay.ts";

export async function dispatch(
  argv: readonly string[],
  env: Environment,
  world: World,
): Promise<number> {
  try {
    // Not in the table, because only completion scripts call it.
    if (argv[0] === "__complete") {
      const names = (flags: readonly string[]) => imageNames(flags, env, world);
      world.stdout(await completions(argv.slice(1), commands, names));
      return exit.done;
    }
    if (argv.length === 0) {
      world.stderr(helpOn("", commands, world.screen));
      return exit.usage;
    }
    const line = parseCommandLine(argv, commands);
    return await runCommand(line, { flags: line.flags, env, reader: world.reader }, world);
  } catch (thrown) {
    world.stderr(errorText(thrown));
    return exitOf(thrown) ?? exit.internal;
  }
}

/** For completion, which has no place for errors. */
async function imageNames(
  flags: readonly string[],
  env: Environment,
  world: World,
): Promise<readonly string[]> {
  let lines = "";
  await dispatch(["images", "--output=name", "--runtime-request-timeout=2s", ...flags], env, {
    ...world,
    stdout: (text) => void (lines += text),
    stderr: () => undefined,
  });
  return lines.split("\n").filter((it) => it !== "");
}

/** The file of `callerWrites` is written by the process that was called, whoever runs the command. */
async function runCommand(line: CommandLine, input: ConfigInput, world: World): Promise<number> {
  const { callerWrites = "" } = line.command;
  const path = textOf(line.invocation, callerWrites) ?? "-";
  if (world.agent !== undefined || path === "-") return runHereOrInAgent(line, input, world);
  const pieces: string[] = [];
  const stdout = (text: string): void => void pieces.push(text);
  const code = await runHereOrInAgent(line, input, { ...world, stdout });
  if (pieces.length === 0) return code;
  const isDry = isDryRun(input);
  if (!isDry) (await world.open()).writeFile(path, pieces.join(""));
  world.stdout(isDry ? `Dry run: would write ${path}.\n` : `Report written to ${path}.\n`);
  return code;
}

const isDryRun = (input: ConfigInput): boolean =>
  loadConfig(withoutFiles(onlyOf(input, ["dryRun"]))).values.dryRun;

async function runHereOrInAgent(
  line: CommandLine,
  input: ConfigInput,
  world: World,
): Promise<number> {
  const { command, invocation, flags } = line;
  // There it is a failed check.
  if (command.name !== "doctor") checkFlags(flags);
  const { agent } = world;
  if (agent === undefined && command.inAgent === true) {
    const code = await runInAgent(line, input, world);
    if (code !== null) return code;
  }
  if (agent !== undefined) rejectForAgent(line, agent);
  const all = agent === undefined ? input : { ...agent, flags: [...agent.flags, ...flags] };
  const context = contextOf({ ...world, ...invocation }, await world.open(), all);
  return (await command.run(context)) ?? exit.done;
}

/** Throws `ConfigError` if the agent does not run the command, or one of its flags would need another agent. */
function rejectForAgent({ command, flags }: CommandLine, agent: ConfigInput): void {
  if (command.inAgent !== true)
    throw usageError("crigc", command.name, `the agent does not run ${command.name}`);
  const written = readWritten({ ...agent, flags: [...agent.flags, ...flags] });
  throwIfAny(processIssues(readWritten(agent), written, flags));
}

function contextOf(
  world: World & Invocation,
  open: Openers,
  { flags, env, reader: disk }: ConfigInput,
): CommandContext {
  const input = { flags, env, reader: rememberedReader(disk) };
  const read = (): Config => configOf(readWritten(input), world.isBesideKubelet);
  const note = (text: string): void => world.stderr(`crigc: ${clean(text)}\n`);
  const loaded = once(() => {
    const merged = read();
    for (const warning of merged.warnings) note(`warning: ${warning}`);
    return merged;
  });
  return {
    ...world,
    open,
    env,
    serve: servedBy(world, input),
    commands,
    say: (text) => world.stdout(`${clean(text)}\n`),
    note,
    read,
    find: () => configToFind(input),
    flags,
    get dryRun(): boolean {
      return isDryRun(input);
    },
    get config(): Config {
      return loaded();
    },
  };
}

/** Runs the command lines of requests, as if their flags had been the agent's too. */
const servedBy =
  (world: World, agent: ConfigInput): RunCommand =>
  (request) =>
    dispatch(request.argv, agent.env, {
      ...world,
      ...request,
      open: () => world.open(request),
      agent,
    });

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
  printFile,
  completion,
  version,
  help,
];
