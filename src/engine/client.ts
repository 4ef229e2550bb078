/** The control socket from the caller's side: what an agent answers, and commands that it runs. */

import { statSync } from "node:fs";
import { join } from "node:path";

import * as v from "valibot";

import { HostError, messageOf } from "../model/errors.ts";
import { parsedJson } from "../model/values.ts";
import { boundedBytes, codeOf } from "../node/files.ts";
import type { Screen } from "../report/terminal.ts";

/** Header of the client's version: another version may understand the command line differently. */
export const VERSION_HEADER = "crigc-version";

/** Of a running agent, in its `--run-dir`. */
export const CONTROL_SOCKET = "crigc.sock";

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
  const status = v.safeParse(Status, parsedJson(text));
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
  readonly user: string;
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
  const { runDir, version, argv, screen, user, signal } = command;
  const unix = join(runDir, CONTROL_SOCKET);
  const id = crypto.randomUUID();
  const { width, colour, unicode } = screen;
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Aborts if nothing has come until then. */
  const within = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), ms);
  };
  const end = (): void => {
    const url = `http://crigc/commands/${id}`;
    void fetch(url, { unix, method: "DELETE" }).catch(() => undefined);
  };
  try {
    within(ANSWER_MS);
    const response = await fetch("http://crigc/commands", {
      unix,
      method: "POST",
      headers: { [VERSION_HEADER]: version },
      body: JSON.stringify({ id, argv, width, colour, unicode, user }),
      signal: silence.signal,
    });
    if (response.status === 404)
      throw busy("the running agent runs no commands; restart it with this version");
    if (response.status !== 200) throw busy((await response.text()).trim());
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    for await (const text of linesOf(response, () => within(SILENT_MS))) {
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
    clearTimeout(timer);
  }
}

const HANGS = "the agent hangs; systemctl restart crigc, then crigc history shows what was removed";

const busy = (message: string, cause?: unknown): HostError =>
  new HostError("lock", message, { cause });

async function* linesOf(response: Response, came: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const chunk of response.body ?? []) {
    came();
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    rest.push(first);
    for (const next of others) {
      yield rest.join("");
      rest = [next];
    }
  }
}

/** The client's terminal: `?width=100&colour=1&unicode=1`. */
export const screenQuery = ({ width, colour, unicode }: Screen): string =>
  `width=${width ?? 0}&colour=${Number(colour)}&unicode=${Number(unicode)}`;

export interface ControlRequest {
  readonly socketPath: string;
  /** With query: `/status.txt?width=80`. */
  readonly path: string;
  readonly timeoutMs: number;
}

/** Far larger than any status or image list. */
const ANSWER_BYTES_MAXIMUM = 64 << 20;

/** The body of the response. Throws `HostError` `http` if no agent answers, or on any status but 200. */
export async function askAgent({ socketPath, path, timeoutMs }: ControlRequest): Promise<string> {
  try {
    // Cheaper than a failing request if the socket is missing.
    statSync(socketPath);
    const signal = AbortSignal.timeout(timeoutMs);
    const url = `http://crigc${path}`;
    const response = await fetch(url, { unix: socketPath, signal, redirect: "error" });
    const body = String(await boundedBytes(response.body ?? [], ANSWER_BYTES_MAXIMUM));
    if (response.status === 200) return body;
    throw new Error(`it answered with status ${response.status}: ${body.slice(0, 200).trim()}`);
  } catch (thrown) {
    const isLate = thrown instanceof Error && thrown.name === "TimeoutError";
    const why = isLate
      ? `no answer within ${timeoutMs} ms; the agent hangs; see its log`
      : (FAILURES[codeOf(thrown)] ?? `${messageOf(thrown)}; is it crigc that listens there?`);
    throw new HostError("http", `cannot reach the agent at ${socketPath}: ${why}`, {
      cause: thrown,
    });
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "not found; start it (crigc install --start, or crigc run), or set its --run-dir",
  ECONNREFUSED: "connection refused; start crigc run again",
  ECONNRESET: "it closed the connection without an answer; is it crigc that listens there?",
  EACCES: "permission denied; run as root (sudo crigc …)",
};
