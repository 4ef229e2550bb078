// What the figures were measured on.

import { statSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";

import type { Command } from "./runs.ts";
import { gigabytes, megabytes } from "./tables.ts";

export function machineLines(program: string, priority: Command): readonly string[] {
  const [processor] = cpus();
  const version = Bun.spawnSync([program, "version"]).stdout.toString().trim();
  const [load = 0] = loadavg();
  return [
    `processor   ${processor?.model ?? "unknown"}, ${cpus().length} cores`,
    `memory      ${gigabytes(totalmem())}`,
    `kernel      Linux ${release()}`,
    `runtime     Bun ${Bun.version}`,
    `executable  ${version}, ${megabytes(statSync(program).size)}`,
    `load        ${load.toFixed(1)} when the measurement began; ${priorityWords(priority)}`,
  ];
}

const priorityWords = (priority: Command): string =>
  priority.length === 0
    ? "other work on this machine counts"
    : "programs run at real-time priority, so that other work hardly counts";
