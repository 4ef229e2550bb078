// This process's use of the machine, for metrics.

import { readdirSync } from "node:fs";
import { memoryUsage, resourceUsage } from "node:process";

import type { ProcessFigures } from "../../model/ports.ts";

export function processFigures(): ProcessFigures {
  const usage = resourceUsage();
  return {
    cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
    residentBytes: memoryUsage.rss(),
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
