// Leaves the built program running as the agent of a test node, and asks it how it is.
import type { RunningProgram } from "../program.ts";
import type { ContainerdNode } from "./node.ts";
import { runProgram, startProgram } from "./program.ts";
import type { Document } from "./reports.ts";
import { until } from "./until.ts";

export interface RunningAgent extends RunningProgram {
  /** Throws where it does not answer. */
  readonly status: () => Promise<Document>;
}

/** Loops that do not come again within a test, but for the one of the pressure. */
export const pressureOnly = [
  "--image-gc-period=1h",
  "--container-gc-period=1h",
  "--image-detection-period=1s",
  "--pressure-period=500ms",
] as const;

/** Starts it and waits until each of its loops has run once; one that does not come so far is not left running. */
export async function startAgent(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<RunningAgent> {
  const running = startProgram(node, "run", ...flags);
  const agent = { ...running, status: () => statusOf(node) };
  try {
    await until("the agent has looked around", 20_000, () => hasLooked(agent));
    return agent;
  } catch (thrown) {
    agent.signal("SIGKILL");
    await agent.exited;
    throw new Error(`the agent did not start: ${agent.said()}`, { cause: thrown });
  }
}

async function hasLooked(agent: RunningAgent): Promise<boolean> {
  if (agent.exitCode() !== null) throw new Error(`it ended with ${agent.exitCode()}`);
  const { loops } = await agent.status().catch(() => ({ loops: [] }));
  // It answers before it has loops.
  const looked = loops.every((loop: Document) => !loop.enabled || loop.lastEndedAt !== null);
  return loops.length > 0 && looked;
}

async function statusOf(node: ContainerdNode): Promise<Document> {
  const { exitCode, stdout, stderr } = await runProgram(node, "status", "-o", "json");
  if (exitCode !== 0) throw new Error(`status ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout);
}
