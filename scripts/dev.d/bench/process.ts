// A process that runs: whether it still does, and what it has used.

import { readFileSync } from "node:fs";

/** Waits; throws if the process ends meanwhile. */
export async function alive(child: Bun.Subprocess, ms: number): Promise<void> {
  await Promise.race([child.exited, Bun.sleep(ms)]);
  if (child.exitCode !== null) throw new Error(`the agent ended with ${child.exitCode}`);
}

/** Resident memory now and at its highest, and the processor time so far, of a process that runs. */
export function usageOf(pid: number): {
  readonly residentBytes: number;
  readonly peakBytes: number;
  readonly processorMs: number;
} {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return {
    residentBytes: kilobytes("VmRSS") * 1024,
    peakBytes: kilobytes("VmHWM") * 1024,
    // Clock ticks of a hundredth of a second.
    processorMs: (Number(fields[11]) + Number(fields[12])) * 10,
  };
}

/**
 * The highest resident memory of a process, asked for until it ends: what the system tells afterwards counts also what
 * the one who started it held then.
 */
export async function peakOf(child: Bun.Subprocess): Promise<number> {
  let peakBytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    try {
      peakBytes = Math.max(peakBytes, usageOf(child.pid).peakBytes);
    } catch {
      // It ended meanwhile.
    }
    await Promise.race([child.exited, Bun.sleep(10)]);
  }
  return peakBytes;
}
