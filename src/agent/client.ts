/** Speaks to a running agent over its control socket, for a command that the agent runs. */

import { join } from "node:path";

import * as v from "valibot";

import { HostError, messageOf } from "../model/errors.ts";
import { codeOf } from "../node/files.ts";
import type { Screen } from "../report/terminal.ts";
import { askAgent, CONTROL_SOCKET, VERSION_HEADER } from "./control.ts";

/** A healthy agent answers within milliseconds, and one that runs a command shows it every 5 s. */
const ANSWER_MS = 10_000;
const SILENT_MS = 30_000;

const Status = v.object({
  version: v.string(),
  dryRun: v.boolean(),
  runtime: v.optional(v.nullable(v.object({ endpoint: v.optional(v.string()) })), null),
  values: v.record(v.string(), v.object({ value: v.unknown() })),
});

export interface FoundAgent {
  readonly dryRun: boolean;
  /** `null`: not found yet. */
  readonly endpoint: string | null;
}

/** No listener, or this user may not know: then the locks tell whether there is an agent. */
const ABSENT: readonly string[] = [
  "ENOENT",
  "ENOTDIR",
  "ECONNREFUSED",
  "FailedToOpenSocket",
  "EACCES",
];

/** `null`: no agent listens there. Throws `HostError` `lock` if it hangs, or is of another version. */
export async function readAgent(runDir: string, version: string): Promise<FoundAgent | null> {
  const socketPath = join(runDir, CONTROL_SOCKET);
  let text: string;
  try {
    text = await askAgent({ socketPath, path: "/status", timeoutMs: ANSWER_MS });
  } catch (thrown) {
    if (!(thrown instanceof HostError)) throw thrown;
    if (ABSENT.includes(codeOf(thrown.cause))) return null;
    const hangs = thrown.cause instanceof Error && thrown.cause.name === "TimeoutError";
    throw busy(hangs ? HANGS : thrown.message, thrown);
  }
  const status = v.safeParse(Status, parsedOrNull(text));
  if (!status.success)
    throw busy(
      `${socketPath} is not the socket of a crigc agent; stop what listens there, or name the agent's --run-dir`,
    );
  const { version: theirs, dryRun, runtime, values } = status.output;
  if (theirs !== version)
    throw busy(`the running agent is ${theirs}, this is ${version}; restart the agent`);
  const configured = values["containerRuntimeEndpoint"]?.value;
  return {
    dryRun,
    endpoint: runtime?.endpoint ?? (typeof configured === "string" ? configured : null),
  };
}

export interface AgentCommand {
  readonly runDir: string;
  readonly version: string;
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Ends the command after its removal in flight; its report still comes. */
  readonly signal: AbortSignal;
}

export interface CommandOutput {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

const Line = v.object({
  out: v.optional(v.string()),
  err: v.optional(v.string()),
  exit: v.optional(v.number()),
});

/** Resolves with the exit code. Throws `HostError` `lock` if the agent does not accept the command, hangs or ends. */
export async function openCommand(command: AgentCommand, output: CommandOutput): Promise<number> {
  const { runDir, version, argv, screen, signal } = command;
  const unix = join(runDir, CONTROL_SOCKET);
  const id = crypto.randomUUID();
  const { width, colour, unicode } = screen;
  const silence = new Silence();
  const end = (): void => {
    const url = `http://crigc/commands/${id}`;
    void fetch(url, { unix, method: "DELETE" }).catch(() => undefined);
  };
  try {
    silence.within(ANSWER_MS);
    const response = await fetch("http://crigc/commands", {
      unix,
      method: "POST",
      headers: { [VERSION_HEADER]: version },
      body: JSON.stringify({ id, argv, width, colour, unicode }),
      signal: silence.signal,
    });
    if (response.status === 404)
      throw busy("the running agent runs no commands; restart it with this version");
    if (response.status !== 200) throw busy((await response.text()).trim());
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    for await (const text of linesOf(response, silence)) {
      const line = v.parse(Line, JSON.parse(text));
      if (line.out !== undefined) output.out(line.out);
      if (line.err !== undefined) output.err(line.err);
      if (line.exit !== undefined) return line.exit;
    }
    throw new Error("the connection was closed");
  } catch (thrown) {
    if (thrown instanceof HostError) throw thrown;
    if (silence.signal.aborted) throw busy(HANGS, thrown);
    throw busy(
      `the agent ended during the command: ${messageOf(thrown)}; crigc history shows what was removed`,
      thrown,
    );
  } finally {
    signal.removeEventListener("abort", end);
    silence.stop();
  }
}

const HANGS = "the agent hangs; systemctl restart crigc, then crigc history shows what was removed";

const busy = (message: string, cause?: unknown): HostError =>
  new HostError("lock", message, { cause });

/** Aborts once nothing has come for so long. */
class Silence {
  readonly #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  within(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

async function* linesOf(response: Response, silence: Silence): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const chunk of response.body ?? []) {
    silence.within(SILENT_MS);
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    rest.push(first);
    for (const next of others) {
      yield rest.join("");
      rest = [next];
    }
  }
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
