// The agent left alone: what it keeps in memory, and what processor time it uses.

import { readdirSync, readFileSync } from "node:fs";

import type { Command } from "./runs.ts";

export interface Idle {
  readonly seconds: number;
  readonly residentBytes: number;
  readonly proportionalBytes: number;
  readonly anonymousBytes: number;
  readonly processorMsPerMinute: number;
}

/** By then the first passes have ended, which are no idling. */
const settlingMs = 10_000;

export async function measureIdle(agent: Command, seconds: number): Promise<Idle> {
  const child = Bun.spawn([...agent], { stdio: ["ignore", "ignore", "pipe"] });
  try {
    await pause(child, settlingMs);
    const usedBefore = processorMs(child.pid);
    await pause(child, seconds * 1000);
    const used = processorMs(child.pid) - usedBefore;
    const memory = readFileSync(`/proc/${child.pid}/smaps_rollup`, "utf8");
    return {
      seconds,
      residentBytes: bytesOf(memory, "Rss"),
      proportionalBytes: bytesOf(memory, "Pss"),
      anonymousBytes: bytesOf(memory, "Anonymous"),
      processorMsPerMinute: (used * 60) / seconds,
    };
  } finally {
    child.kill("SIGTERM");
    await child.exited;
  }
}

async function pause(child: Bun.Subprocess<"ignore", "ignore", "pipe">, ms: number): Promise<void> {
  await Promise.race([child.exited, Bun.sleep(ms)]);
  if (child.exitCode !== null)
    throw new Error(`the agent ended with ${child.exitCode}: ${await child.stderr.text()}`);
}

/** The scheduler counts in nanoseconds, for each thread. */
function processorMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [used = "0"] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return Number(used) / 1e6;
  });
  return threads.reduce((sum, used) => sum + used, 0);
}

function bytesOf(memory: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(memory)?.[1];
  if (found === undefined) throw new Error(`smaps_rollup names no ${name}`);
  return Number(found) * 1024;
}
