// Kills a child process that leads a process group, with everything it started in that group.

import { kill } from "node:process";

/** Of a child spawned with `detached: true`. One that has ended is left alone, because its number may be another's by now. */
export function killProcessGroup({
  pid,
  exitCode,
  signalCode,
}: Pick<Bun.Subprocess, "pid" | "exitCode" | "signalCode">): void {
  if (exitCode !== null || signalCode !== null) return;
  try {
    kill(-pid, "SIGKILL");
  } catch {
    // It ended a moment ago: nothing is left to kill.
  }
}
