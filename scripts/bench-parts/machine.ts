// What the figures were measured on.

import { statSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";

import { gigabytes, megabytes } from "./tables.ts";

export function machineLines(program: string): readonly string[] {
  const [processor] = cpus();
  const version = Bun.spawnSync([program, "version"]).stdout.toString().trim();
  const [load = 0] = loadavg();
  return [
    `processor   ${processor?.model ?? "unknown"}, ${cpus().length} cores`,
    `memory      ${gigabytes(totalmem())}`,
    `kernel      Linux ${release()}`,
    `runtime     Bun ${Bun.version}`,
    `executable  ${version}, ${megabytes(statSync(program).size)}`,
    `load        ${load.toFixed(1)} when the measurement began${load > cpus().length / 2 ? ": the machine is busy, so times are long" : ""}`,
  ];
}
