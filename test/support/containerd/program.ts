// Runs the built executable against a test node, with everything that it reads and writes kept on that node.
import { existsSync } from "node:fs";
import { resolve } from "node:path";

import type { CommandResult } from "./command.ts";
import type { ContainerdNode } from "./node.ts";

/** CRIGC_PROGRAM puts another build in its place. */
export const program =
  process.env["CRIGC_PROGRAM"] ?? resolve(import.meta.dir, "../../../dist/crigc");

/** Flags that tie the program to the node: endpoint and directories. */
export function nodeFlags(node: ContainerdNode): readonly string[] {
  return [
    `--container-runtime-endpoint=${node.endpoint}`,
    `--pod-logs-dir=${node.podLogsDirectory}`,
    `--container-logs-dir=${node.containerLogsDirectory}`,
    `--root-dir=${node.rootDirectory}`,
    `--state-dir=${node.stateDirectory}`,
    `--run-dir=${node.runDirectory}`,
    `--keep-dir=${node.keepDirectory}`,
  ];
}

/** Runs it to its end: `runProgram(node, "gc", "-o", "json")`. The exit code is the caller's to judge. */
export async function runProgram(
  node: ContainerdNode,
  command: string,
  ...flags: readonly string[]
): Promise<CommandResult> {
  const running = startProgram(node, command, ...flags);
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(running.stdout).text(),
    new Response(running.stderr).text(),
    running.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** Leaves it running, as `run` needs. The caller ends it: `child.kill(); await child.exited`. */
export function startProgram(node: ContainerdNode, command: string, ...flags: readonly string[]) {
  if (!existsSync(program)) throw new Error(`${program} is not there: run scripts/build`);
  return Bun.spawn([program, command, ...nodeFlags(node), ...flags], {
    // Nothing of the tester's surroundings: no CRIGC_ variable, no configuration by chance.
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    cwd: node.directory,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}
