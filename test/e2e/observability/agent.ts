// The executable as an agent beside a fake runtime, with everything of its own: state, run directory, configuration, port.

import { createServer } from "node:net";
import { join } from "node:path";

import {
  type FakeRuntime,
  type FakeRuntimeOptions,
  startFakeRuntime,
} from "../../support/fake-runtime/server.ts";
import { put } from "../../support/scratch.ts";

export const EXECUTABLE = join(import.meta.dir, "../../../dist/crigc");

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningAgent {
  readonly runtime: FakeRuntime;
  readonly configFile: string;
  readonly metricsPort: number;
  /** Everything that it has written to its log so far. */
  log(): string;
  /** A command of the same executable, told of the agent's directories. */
  command(...words: readonly string[]): Promise<Ran>;
  /** A path of the metrics address. */
  get(path: string): Promise<{ readonly status: number; readonly body: string }>;
  /** Changes the configuration file and sends SIGHUP. */
  configure(yaml: string): void;
  stop(): Promise<number>;
}

export async function startAgent(
  directory: string,
  options: { readonly runtime?: FakeRuntimeOptions; readonly yaml?: string } = {},
): Promise<RunningAgent> {
  const runtime = await startFakeRuntime(options.runtime);
  const metricsPort = await freePort();
  const configFile = put(directory, "crigc.yaml", header + (options.yaml ?? ""));
  // Commands have a file of their own, so that they work beside a broken one of the agent.
  const askersFile = put(directory, "asker.yaml", header);
  const own = [
    `--container-runtime-endpoint=${runtime.endpoint}`,
    `--state-dir=${join(directory, "state")}`,
    `--run-dir=${join(directory, "run")}`,
    `--root-dir=${directory}`,
    `--pod-logs-dir=${join(directory, "pods")}`,
    `--container-logs-dir=${join(directory, "containers")}`,
  ];
  const program = Bun.spawn(
    [
      EXECUTABLE,
      "run",
      `--config=${configFile}`,
      ...own,
      `--metrics-bind-address=127.0.0.1:${metricsPort}`,
      ...QUICK,
    ],
    { stdout: "ignore", stderr: "pipe", env: { PATH: process.env["PATH"] ?? "" } },
  );
  let log = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of program.stderr) log += decoder.decode(chunk, { stream: true });
  })();
  return {
    runtime,
    configFile,
    metricsPort,
    log: () => log,
    command: (...words) => ran([EXECUTABLE, ...words, `--config=${askersFile}`, ...own]),
    get: async (path) => {
      const answer = await fetch(`http://127.0.0.1:${metricsPort}${path}`);
      return { status: answer.status, body: await answer.text() };
    },
    configure: (yaml) => {
      put(directory, "crigc.yaml", header + yaml);
      program.kill("SIGHUP");
    },
    stop: async () => {
      program.kill("SIGTERM");
      const code = await program.exited;
      await reading;
      await runtime.stop();
      return code;
    },
  };
}

const header = "apiVersion: crigc/v1\nkind: CrigcConfiguration\n";
/** So that a test sees every loop run. */
const QUICK = [
  "--image-gc-period=1s",
  "--image-detection-period=1s",
  "--image-cache-period=1s",
  "--container-gc-period=1s",
  "--pressure-period=1s",
  "--boot-grace=0s",
];

async function ran(words: readonly string[]): Promise<Ran> {
  const program = Bun.spawn([...words], {
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "" },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(program.stdout).text(),
    new Response(program.stderr).text(),
    program.exited,
  ]);
  return { code, stdout, stderr };
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => void server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Asks again until the answer is there, or fails with the last one. */
export async function eventually<Answer>(
  ask: () => Promise<Answer>,
  isThere: (answer: Answer) => boolean,
  seconds = 30,
): Promise<Answer> {
  const until = Date.now() + seconds * 1000;
  let last: unknown = "no answer";
  while (Date.now() < until) {
    try {
      const answer = await ask();
      if (isThere(answer)) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    await Bun.sleep(100);
  }
  throw new Error(`not there after ${seconds} s; the last answer: ${Bun.inspect(last)}`);
}
