// Sends the HTTP request of a pod's recorded pre-stop handler.

import { HostError } from "../model/errors.ts";
import { httpGet } from "./http-get.ts";

export interface HookGet {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  /** With its leading slash. */
  readonly path: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly timeoutMs: number;
}

/** What a handler answers is not read; this is for one that never ends to answer. */
const BYTES_MAX = 64 * 1024;

/** Resolves with the status, whatever it is. Throws `HostError` of kind `http`. */
export async function sendHook(hook: HookGet, signal: AbortSignal): Promise<number> {
  const host = hook.host.includes(":") && !hook.host.startsWith("[") ? `[${hook.host}]` : hook.host;
  const text = `${hook.scheme}://${host}:${hook.port}${hook.path}`;
  if (!URL.canParse(text)) {
    throw new HostError(
      "http",
      `the recorded pre-stop handler names no valid URL: ${JSON.stringify(text)}`,
    );
  }
  const answer = await httpGet({
    url: new URL(text),
    headers: Object.fromEntries(hook.headers.map(({ name, value }) => [name, value])),
    tls: { verify: false },
    timeoutMs: hook.timeoutMs,
    bytesMax: BYTES_MAX,
    signal,
  });
  return answer.status;
}
