// The built executable on a test node, with everything that it reads and writes kept on that node.
import {
  type ProgramResult,
  type RunningProgram,
  runProgram as run,
  startProgram as start,
} from "../program.ts";
import type { ContainerdNode } from "./node.ts";

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
export const runProgram = (
  node: ContainerdNode,
  command: string,
  ...flags: readonly string[]
): Promise<ProgramResult> => run([command, ...nodeFlags(node), ...flags], { cwd: node.directory });

/** Leaves it running, as `run` needs. */
export const startProgram = (
  node: ContainerdNode,
  command: string,
  ...flags: readonly string[]
): RunningProgram => start([command, ...nodeFlags(node), ...flags], { cwd: node.directory });
