/** The control socket from the caller's side: what an agent answers, and commands that it runs. */

import { statSync } from "node:fs";
import { join } from "node:path";

import * as v from "valibot";

import { HostError } from "../model/errors.ts";
import { once, parsedJson } from "../model/values.ts";
import { codeOf, reasonOf } from "../node/files.ts";
import type { Screen } from "../report/terminal.ts";
import type { CommandRequest } from "./owner.ts";

/** Header of the client's version: another version may understand the command line differently. */
export const VERSION_HEADER = "crigc-version";

/** Of a running agent, in its `--run-dir`. */
export const CONTROL_SOCKET = "crigc.sock";

/** A healthy agent answers within milliseconds, and one that runs a command shows it every 5 s. */
const ANSWER_MS = 10_000;
const SILENT_MS = 30_000;
/** Silence is counted in steps: while Ctrl-Z stops the client, at most one of them passes. */
const STEP_MS = 500;

/** The body of the answer, for a path with its query. Throws `HostError` `lock` if no agent answers, or on any status but 200. */
export async function askAgent(
  runDir: string,
  path: string,
  init: RequestInit = {},
): Promise<string> {
  const pieces = await Array.fromAsync(answerOf(runDir, path, init));
  return pieces.join("");
}

export interface AgentCommand extends Omit<CommandRequest, "owner"> {
  readonly runDir: string;
  readonly version: string;
  /** The runtime that the caller names; `null`: any. */
  readonly endpoint: string | null;
}

/** The last one has the exit code; `null`: the agent does not hold that runtime, or is a dry run. */
const Line = v.object({
  out: v.optional(v.string()),
  err: v.optional(v.string()),
  exit: v.optional(v.nullable(v.number())),
});

/**
 * Resolves with the exit code; `null`: no agent listens there, or it does not hold that runtime. Throws `HostError` `lock`
 * if the agent does not accept the command, hangs or ends.
 */
export async function openCommand(command: AgentCommand): Promise<number | null> {
  const { runDir, version, endpoint, argv, screen, user, signal } = command;
  const id = crypto.randomUUID();
  const answer = answerOf(runDir, "/commands", {
    method: "POST",
    headers: { [VERSION_HEADER]: version },
    body: JSON.stringify({ id, endpoint, argv, user, ...screen, untilMs: Date.now() + ANSWER_MS }),
  });
  const end = (): void =>
    void askAgent(runDir, `/commands/${id}`, { method: "DELETE" }).catch(() => undefined);
  const accepted = once(() => {
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
  try {
    for await (const text of linesOf(answer)) {
      accepted();
      const line = v.safeParse(Line, parsedJson(text));
      if (!line.success) throw new HostError("lock", `${runDir}/${CONTROL_SOCKET} ${NOT_CRIGC}`);
      const { out, err, exit } = line.output;
      if (out !== undefined) command.stdout(out);
      if (err !== undefined) command.stderr(err);
      if (exit !== undefined) return exit;
    }
  } catch (thrown) {
    if (isAbsent(thrown)) return null;
    throw thrown;
  } finally {
    signal.removeEventListener("abort", end);
  }
  throw new HostError("lock", `the agent ended during the command; ${HISTORY}`);
}

const NOT_CRIGC = "is not the socket of a crigc agent; stop what listens there";
const HISTORY = "crigc history shows what was removed";

/** No listener, or this user may not know: then the locks tell whether there is an agent. */
const isAbsent = (thrown: unknown): boolean =>
  thrown instanceof HostError &&
  ["ENOENT", "ENOTDIR", "ECONNREFUSED", "FailedToOpenSocket", "EACCES"].includes(
    codeOf(thrown.cause),
  );

async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest: string[] = [];
  for await (const piece of pieces) {
    const [first = "", ...others] = piece.split("\n");
    rest.push(first);
    for (const next of others) {
      yield rest.join("");
      rest = [next];
    }
  }
}

/** In pieces as they come. */
async function* answerOf(runDir: string, path: string, init: RequestInit): AsyncGenerator<string> {
  const unix = join(runDir, CONTROL_SOCKET);
  const silence = new AbortController();
  let leftMs = ANSWER_MS;
  const steps = setInterval(() => {
    leftMs -= STEP_MS;
    if (leftMs <= 0) silence.abort();
  }, STEP_MS);
  let hasBegun = false;
  try {
    // A failed request does not say why.
    statSync(unix);
    const { signal } = silence;
    const response = await fetch(`http://crigc${path}`, { ...init, unix, signal });
    if (response.status !== 200)
      throw new HostError(
        "lock",
        `${unix} answers ${response.status}: ${(await response.text()).trim()}`,
      );
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      hasBegun = true;
      leftMs = SILENT_MS;
      yield decoder.decode(chunk, { stream: true });
    }
  } catch (thrown) {
    if (thrown instanceof HostError) throw thrown;
    const why = FAILURES[codeOf(thrown)] ?? reasonOf(thrown);
    const failure = hasBegun
      ? `the agent ended during the command: ${reasonOf(thrown)}; ${HISTORY}`
      : `cannot reach the agent at ${unix}: ${why}`;
    const hangs = `the agent hangs; systemctl restart crigc, then ${HISTORY}`;
    throw new HostError("lock", silence.signal.aborted ? hangs : failure, { cause: thrown });
  } finally {
    clearInterval(steps);
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "not found; start it (crigc install --start, or crigc run), or set its --run-dir",
  ECONNREFUSED: "connection refused; start crigc run again",
  ECONNRESET: "it closed the connection without an answer; is it crigc that listens there?",
  EACCES: "permission denied; run as root (sudo crigc …)",
};

/** The client's terminal: `?width=100&colour=1`. */
export const screenQuery = ({ width, colour }: Screen): string =>
  `width=${width ?? 0}&colour=${Number(colour)}`;
