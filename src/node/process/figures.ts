// This process's use of the machine, for metrics.

import { readdirSync } from "node:fs";
import { resourceUsage } from "node:process";

import type { ProcessFigures } from "../../model/ports.ts";
import { residentMemory } from "./memory.ts";

export function processFigures(): ProcessFigures {
  const usage = resourceUsage();
  return {
    cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
    residentBytes: residentMemory(),
    openFiles: openFiles(),
  };
}

function openFiles(): number | null {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return null;
  }
}
