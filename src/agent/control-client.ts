/** Queries a running agent over its control socket, with a deadline and a size limit. */

import { statSync } from "node:fs";

import { HostError, messageOf } from "../model/errors.ts";

export interface ControlRequest {
  readonly socketPath: string;
  /** With query: `/status.txt?width=80`. */
  readonly path: string;
  readonly timeoutMs: number;
}

/** Far larger than any status or image list. */
const ANSWER_BYTES_MAXIMUM = 64 << 20;

/** The body of the response. Throws `HostError` `http` if no agent answers, or on any status but 200. */
export async function askAgent(request: ControlRequest): Promise<string> {
  const { status, body } = await exchange(request);
  if (status === 200) return body;
  throw new HostError(
    "http",
    `the agent at ${request.socketPath} answered ${request.path} with status ${status}: ${body.slice(0, 200).trim()}; is it the same version of crigc?`,
  );
}

async function exchange(
  request: ControlRequest,
): Promise<{ readonly status: number; readonly body: string }> {
  const deadline = AbortSignal.timeout(request.timeoutMs);
  try {
    // Cheaper than a failing request if the socket is missing.
    statSync(request.socketPath);
    const response = await fetch(`http://crigc${request.path}`, {
      unix: request.socketPath,
      signal: deadline,
      redirect: "error",
    });
    return { status: response.status, body: await boundedText(response) };
  } catch (error) {
    throw new HostError("http", failure(request, error), { cause: error });
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES_MAXIMUM)
      throw new Error(`the answer is larger than ${ANSWER_BYTES_MAXIMUM} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function failure(request: ControlRequest, error: unknown): string {
  const asking = `cannot reach the agent at ${request.socketPath}`;
  const code = error instanceof Error && "code" in error ? error.code : null;
  if (code === "ENOENT")
    return `no agent is running: ${request.socketPath} not found; start it (crigc install --start, or crigc run), or set its --run-dir`;
  if (code === "ECONNREFUSED") return `${asking}: connection refused; start crigc run again`;
  if (code === "ECONNRESET")
    return `${asking}: it closed the connection without an answer; is it crigc that listens there?`;
  if (code === "EACCES") return `${asking}: permission denied; run as root (sudo crigc …)`;
  if (error instanceof Error && error.name === "TimeoutError")
    return `${asking}: no answer within ${request.timeoutMs} ms; the agent hangs; see its log`;
  return `${asking}: ${messageOf(error)}; is it crigc that listens there?`;
}
