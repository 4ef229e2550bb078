// Runs the built executable: to its end, or in the background with what it says within reach.
import { existsSync } from "node:fs";
import { resolve } from "node:path";

import { type CommandResult, tryCommand } from "./containerd/command.ts";
import { until } from "./containerd/until.ts";

/** CRIGC_PROGRAM puts another build in its place. */
export const program = resolve(
  process.env["CRIGC_PROGRAM"] ?? resolve(import.meta.dir, "../../dist/crigc"),
);

export interface ProgramSurroundings {
  /** The whole environment beside PATH: no CRIGC_ variable, no configuration by chance. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Words in front, such as `setpriv …`, which put it into other surroundings. */
  readonly within?: readonly string[];
}

export interface ProgramResult extends CommandResult {
  readonly tookMs: number;
}

/** A minute is more than anything here needs. */
const LONGEST_MS = 60_000;

/** The exit code is the caller's to judge. */
export async function runProgram(
  words: readonly string[],
  surroundings: ProgramSurroundings = {},
): Promise<ProgramResult> {
  const startedAt = performance.now();
  const { argv, ...options } = placed(words, surroundings);
  const result = await tryCommand(argv, { ...options, timeout: LONGEST_MS });
  return { ...result, tookMs: performance.now() - startedAt };
}

export interface RunningProgram {
  readonly pid: number;
  /** Everything that it wrote to stderr so far. */
  said(): string;
  answered(): string;
  /** Until a text was said; throws with the whole story when it takes too long. */
  untilSaid(text: string | RegExp, withinMs?: number): Promise<void>;
  /** Sends a signal without waiting. */
  signal(name: NodeJS.Signals): void;
  /** `null`: it still runs. */
  exitCode(): number | null;
  /** SIGTERM, unless it has ended; the exit code. */
  stop(): Promise<number>;
  readonly exited: Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Leaves it running; `await using` ends it. */
export function startProgram(
  words: readonly string[],
  surroundings: ProgramSurroundings = {},
): RunningProgram {
  const { argv, ...options } = placed(words, surroundings);
  const child = Bun.spawn(argv, { ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const said = gathered(child.stderr);
  const answered = gathered(child.stdout);
  const untilSaid = async (text: string | RegExp, withinMs = 10_000): Promise<void> => {
    const isSaid = (): boolean =>
      typeof text === "string" ? said().includes(text) : text.test(said());
    await until(`the program said ${String(text)}`, withinMs, isSaid).catch((error: unknown) => {
      const last = said().split("\n").slice(-40).join("\n");
      throw new Error(`${String(error)}; it said at last:\n${last}`, { cause: error });
    });
  };
  const stop = async (): Promise<number> => {
    if (child.exitCode === null) child.kill("SIGTERM");
    const tooLong = setTimeout(() => child.kill("SIGKILL"), LONGEST_MS);
    const code = await child.exited;
    clearTimeout(tooLong);
    return code;
  };
  return {
    pid: child.pid,
    said,
    answered,
    untilSaid,
    signal: (name) => child.kill(name),
    exitCode: () => child.exitCode,
    stop,
    exited: child.exited,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

function placed(
  words: readonly string[],
  { env = {}, cwd = "/", within = [] }: ProgramSurroundings,
) {
  if (!existsSync(program)) throw new Error(`${program} is not there: run scripts/build`);
  const argv = [...within, program, ...words];
  return { argv, env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env }, cwd };
}

function gathered(stream: ReadableStream<Uint8Array>): () => string {
  let text = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  };
  void read();
  return () => text;
}
