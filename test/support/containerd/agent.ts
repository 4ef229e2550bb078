// Leaves the built program running as the agent of a test node, and asks it how it is.
import type { ContainerdNode } from "./node.ts";
import { runProgram, startProgram } from "./program.ts";
import { until } from "./until.ts";

export interface AgentStatus {
  readonly runtimeError: string | null;
  readonly underPressure: boolean;
  readonly pressure: readonly { readonly signal: string; readonly due: boolean }[];
  readonly events: readonly { readonly reason: string; readonly message: string }[];
  readonly lastPasses: readonly { readonly passKind: string; readonly summary: string }[];
  readonly loops: readonly { readonly enabled: boolean; readonly lastEndedAt: string | null }[];
}

export interface RunningAgent {
  readonly pid: number;
  /** Everything it has said so far. */
  readonly words: () => string;
  /** Throws where it does not answer. */
  readonly status: () => Promise<AgentStatus>;
  /** `undefined` while it runs. */
  readonly exitCode: () => number | undefined;
  readonly signal: (name: "SIGTERM" | "SIGKILL" | "SIGHUP") => void;
  /** Waits until it has ended, and answers with its exit code. */
  readonly ended: () => Promise<number>;
  /** Asks it to end and waits for it. */
  readonly stop: () => Promise<number>;
}

/** Loops that come soon, each named by its flag; what is given beside them comes later and so overrides. */
export const shortPeriods = [
  "--image-gc-period=2s",
  "--image-detection-period=2s",
  "--image-cache-period=1s",
  "--container-gc-period=2s",
  "--pressure-period=500ms",
] as const;

/** Loops that do not come again within a test, but for the one of the pressure. */
export const pressureOnly = [
  "--image-gc-period=1h",
  "--container-gc-period=1h",
  "--image-detection-period=1s",
  "--pressure-period=500ms",
] as const;

/** Starts it without waiting for anything. */
export function launchAgent(node: ContainerdNode, ...flags: readonly string[]): RunningAgent {
  const child = startProgram(node, "run", ...flags);
  let words = "";
  const reading = collect(child.stderr, (text) => (words += text));
  void collect(child.stdout, () => undefined);
  const ended = async (): Promise<number> => {
    await reading;
    return child.exited;
  };
  return {
    pid: child.pid,
    words: () => words,
    status: () => statusOf(node),
    exitCode: () => child.exitCode ?? undefined,
    signal: (name) => child.kill(name),
    ended,
    stop: () => {
      child.kill("SIGTERM");
      return ended();
    },
  };
}

/** Starts it and waits until each of its loops has run once; one that does not come so far is not left running. */
export async function startAgent(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<RunningAgent> {
  const agent = launchAgent(node, ...flags);
  try {
    await until("the agent has looked around", 20_000, () => hasLooked(agent));
    return agent;
  } catch (thrown) {
    agent.signal("SIGKILL");
    await agent.ended();
    throw new Error(`the agent did not start: ${agent.words()}`, { cause: thrown });
  }
}

async function hasLooked(agent: RunningAgent): Promise<boolean> {
  if (agent.exitCode() !== undefined) throw new Error(`it ended with ${agent.exitCode()}`);
  try {
    const { loops } = await agent.status();
    // It answers before it has loops.
    const looked = loops.every(({ enabled, lastEndedAt }) => !enabled || lastEndedAt !== null);
    return loops.length > 0 && looked;
  } catch {
    return false;
  }
}

async function statusOf(node: ContainerdNode): Promise<AgentStatus> {
  const { exitCode, stdout, stderr } = await runProgram(node, "status", "-o", "json");
  if (exitCode !== 0) throw new Error(`status ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout) as AgentStatus;
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  take: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}
